"""Reads the imports of every module: they go one way; stages meet only in the service and what keeps its state."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tracescore import errors

PACKAGE = Path(__file__).parent.parent / "tracescore"

FOUNDATION = {"model", "errors", "formulas", "config", "config_drift", "config_types", "config_gold", "logs"}
"""What any stage may import, whether it does at present or not."""

GROUND: dict[str, set[str]] = {
    "__init__": set(),
    "model": set(),
    "errors": {"model"},
    "formulas": set(),
    "logs": set(),
    "config_types": {"errors"},
    "config_drift": {"config_types", "model"},
    "config_gold": {"config_types"},
    "config": {"config_drift", "config_gold", "config_types", "formulas", "model"},
    "config_yaml": {"errors"},
    "config_checks": {"config", "config_gold", "config_types", "errors", "model"},
    "config_file": {"config", "config_checks", "config_types", "config_yaml", "errors"},
    "asgi": set(),
    "garbage": set(),
    "turns": set(),
    "sqlite_file": {"errors"},
    "labels": set(),
    "wire": set(),
    "together": set(),
    "tracebacks": set(),
    "retrying": set(),
    "listener": {"asgi", "config_types", "errors"},
    "openai_endpoint": {"errors", "retrying", "tracebacks", "turns"},
    "buckets": set(),
    "ledger": {"buckets", "model"},
    "pending": {"config", "model"},
}
"""What stages stand on: all that each of these parts imports."""

STAGES: dict[str, set[str]] = {
    "receiver": {"asgi", "listener", "wire"},
    "assembly": set(),
    "interactions": set(),
    "redaction": set(),
    "sampling": set(),
    "embedder": {"openai_endpoint", "retrying", "together"},
    "judge": {"embedder", "openai_endpoint", "retrying", "together"},
    "evaluators": {"embedder", "judge", "together"},
    "drift": {"labels", "sqlite_file"},
    "exporters": {"__init__", "asgi", "buckets", "drift", "labels", "retrying", "tracebacks", "wire"},
    "gold": {"config_yaml", "labels", "retrying", "sqlite_file", "tracebacks", "wire"},
    "spool": {"sqlite_file", "wire"},
    "restart": {"assembly", "exporters", "interactions", "ledger", "spool"},
    "keeper": {"assembly", "exporters", "interactions", "judge", "ledger", "pending", "restart", "spool"},
    "web": {"asgi", "ledger"},
    "inspect_files": {"assembly", "interactions", "receiver"},
    "scorer": {"embedder", "evaluators", "judge"},
    "score_file": {"evaluators", "judge", "together"},
    "gold_command": {"assembly", "evaluators", "gold", "interactions", "judge", "listener", "receiver", "redaction"},
    "page_client": set(),
    "demo": {"service"},
}
"""What stages, and the places where they meet, import beside the foundation; the service and cli may import any."""

ARROWS = GROUND | STAGES


def _part(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tracescore":
            rest = node.module.split(".")[1:]
            names |= {rest[0]} if rest else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tracescore.")}
    return {"__init__" if name == "__version__" else name for name in names}


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_one_way(file: Path) -> None:
    part = _part(file)
    if part in {"service", "cli", "cli_drift", "cli_gold", "cli_options", "__main__"}:
        return
    assert part in ARROWS, f"{part}: a new part of the package needs its row in this table"
    allowed = GROUND[part] if part in GROUND else STAGES[part] | FOUNDATION
    wrong = _imported(file) - allowed - {part}
    assert not wrong, f"{file.name} must not import {sorted(wrong)}"


@pytest.mark.parametrize("part", ARROWS)
def test_every_arrow_of_the_table_is_used(part: str) -> None:
    used = {name for file in PACKAGE.rglob("*.py") if _part(file) == part for name in _imported(file)}
    assert ARROWS[part] <= used, f"{part} does not import {sorted(ARROWS[part] - used)}: take the arrow out"


def test_nothing_imports_the_service_but_the_command_line_and_the_demo() -> None:
    importers = {_part(file) for file in PACKAGE.rglob("*.py") if "service" in _imported(file)}
    assert importers <= {"cli", "demo", "service"}


@pytest.mark.parametrize("name", ["utils", "core", "common", "helpers", "base", "manager"])
def test_no_room_without_a_subject(name: str) -> None:
    assert not [file for file in PACKAGE.rglob("*.py") if name in file.relative_to(PACKAGE).with_suffix("").parts]


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
