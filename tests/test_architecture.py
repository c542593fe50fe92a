"""Reads the imports of every module: they go one way; stages meet only in the service and what keeps its state."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tracescore"

CONTRACTS = {"model", "errors", "formulas"}
SETTINGS = CONTRACTS | {"config"}
STAGE = SETTINGS | {"listener"}
ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "model": set(),
    "errors": {"model"},
    "formulas": set(),
    "config": CONTRACTS,
    "config_file": {"config", "errors"},
    "listener": {"errors"},
    "logs": set(),
    "receiver": STAGE,
    "spool": STAGE,
    "restart": STAGE | {"spool", "assembly", "interactions", "exporters"},
    "keeper": STAGE | {"spool", "assembly", "interactions", "exporters", "judge", "restart"},
    "assembly": STAGE,
    "interactions": STAGE,
    "sampling": STAGE,
    "embedder": STAGE | {"endpoint", "together"},
    "together": set(),
    "endpoint": STAGE,
    "judge": STAGE | {"embedder", "endpoint", "together"},
    "evaluators": STAGE | {"embedder", "judge", "together"},
    "drift": STAGE,
    "exporters": STAGE | {"drift", "__init__"},
    "web": STAGE | {"__init__"},
    "demo": STAGE | {"service"},
    "offline": STAGE | {"receiver", "interactions", "evaluators", "judge"},
}
"""Who may import whom, by the first part of the name below `tracescore`. service and cli may import anything."""


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
    if part in {"service", "cli"}:
        return
    assert part in ALLOWED, f"{part}: a new part of the package needs its row in this table"
    wrong = _imported(file) - ALLOWED[part] - {part}
    assert not wrong, f"{file.name} must not import {sorted(wrong)}"


def test_nothing_imports_the_service_but_the_command_line_and_the_demo() -> None:
    importers = {_part(file) for file in PACKAGE.rglob("*.py") if "service" in _imported(file)}
    assert importers <= {"cli", "demo", "service"}


@pytest.mark.parametrize("name", ["utils", "core", "common", "helpers", "base", "manager"])
def test_no_room_without_a_subject(name: str) -> None:
    assert not [file for file in PACKAGE.rglob("*.py") if name in file.relative_to(PACKAGE).with_suffix("").parts]
