"""Reads the imports of every module: they go one way; stages meet only in the service and what keeps its state."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import PACKAGE
from tracescore import errors

GROUND: dict[str, set[str]] = {
    "__init__": set(),
    "model": set(),
    "formulas": set(),
    "logs": set(),
    "runtime": set(),
    "errors": {"model"},
    "config": {"errors", "formulas", "model"},
    "net": {"config", "errors", "runtime"},
}
"""What any part may stand on, with all that each of them imports."""

STAGES: dict[str, set[str]] = {
    "otlp": set(),
    "datasets": {"interactions"},  # what a document is
    "receiver": {"otlp"},
    "assembly": set(),
    "interactions": set(),
    "redaction": set(),
    "sampling": set(),
    "embedder": set(),
    "judge": {"embedder", "spool"},
    "evaluators": {"embedder", "judge"},
    "exporters": {"__init__", "spool"},
    "spool": set(),
    "drift": {"exporters", "spool"},
    "calibration": {"drift", "exporters", "spool"},
    "gold": {"datasets", "drift", "exporters", "spool"},
    "pipeline": {
        *("assembly", "embedder", "evaluators", "exporters", "gold", "interactions", "judge", "otlp"),
        *("redaction", "sampling", "spool"),
    },
    "web": {"__init__", "calibration", "drift", "exporters", "gold", "pipeline", "spool"},
    "scoring": {"datasets", "evaluators", "judge", "pipeline", "redaction"},
    "testing": {"scoring"},
    "demo": {"service", "drift"},
}
"""What stages, and the places where they meet, import beside the ground; the service and the command line may any."""

FREE = {"service", "cli", "__main__"}


@pytest.mark.parametrize("file", architecture.files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_one_way(file: Path) -> None:
    part = architecture.part(file)
    if part in FREE:
        return
    assert part in GROUND | STAGES, f"{part}: a new part of the package needs its row in this table"
    allowed = GROUND[part] if part in GROUND else STAGES[part] | set(GROUND) - {"__init__"}
    wrong = architecture.imported(file) - allowed
    assert not wrong, f"{file.name} must not import {sorted(wrong)}"


@pytest.mark.parametrize("part", GROUND | STAGES)
def test_every_arrow_of_the_table_is_used(part: str) -> None:
    table = GROUND | STAGES
    used = architecture.arrows()[part]
    assert table[part] <= used, f"{part} does not import {sorted(table[part] - used)}: take the arrow out"


def test_no_circle_joins_the_parts() -> None:
    assert architecture.floors(architecture.arrows())[-1] == ["__main__"]


def test_nothing_imports_the_service_but_the_command_line_and_the_demo() -> None:
    importers = {part for part, of in architecture.arrows().items() if "service" in of}
    assert importers <= {"cli", "demo"}


@pytest.mark.parametrize("figure", architecture.LIMITS)
def test_nothing_grows_out_of_sight(figure: str) -> None:
    assert architecture.figures()[figure] <= architecture.LIMITS[figure]


@pytest.mark.parametrize("name", ["utils", "core", "common", "helpers", "base", "manager"])
def test_no_room_without_a_subject(name: str) -> None:
    assert not [file for file in PACKAGE.rglob("*.py") if name in file.relative_to(PACKAGE).with_suffix("").parts]


def test_no_public_type_name_stands_twice() -> None:
    """Classes and aliases of types; what a module keeps to itself has a name that begins with an underscore."""
    named: dict[str, set[str]] = {}
    for file in architecture.files():
        for name in architecture.type_names(file):
            named.setdefault(name, set()).add(str(file.relative_to(PACKAGE)))
    twice = {name: sorted(where) for name, where in named.items() if len(where) > 1}
    assert not twice, f"choose another name for one of each: {twice}"


def test_the_tree_of_errors_is_whole() -> None:
    """What a module raises for itself alone has a name that begins with an underscore."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    found = {"TracescoreError", "Exception"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    public = {name for name in found - {"Exception"} if not name.startswith("_")}
    drawn = set(re.findall(r"^[\u2500-\u257f ]*(\w+)(?:   *.*)?$", errors.__doc__ or "", re.MULTILINE))
    assert public == drawn
    assert {name for name, of in bases.items() if "Exception" in of} == {"TracescoreError"}
