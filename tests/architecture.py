"""What the house looks like: its parts, their arrows, and how long things are. `python -m tests.architecture`."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "tracescore"

LIMITS = {"median": 5, "p90": 16, "longest": 45, "file": 350, "service.py": 200, "beside": 9}
"""Lines of a function, of a file and of the flow; modules that lie beside the packages."""


def part(file: Path) -> str:
    """The package, or the module beside the packages, that a file belongs to."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def files() -> list[Path]:
    """Every module of the product."""
    return sorted(PACKAGE.rglob("*.py"))


def imported(file: Path) -> set[str]:
    """The parts that a file imports, its own left out."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tracescore":
            rest = node.module.split(".")[1:]
            names |= {rest[0]} if rest else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tracescore.")}
    return {"__init__" if name == "__version__" else name for name in names} - {part(file)}


def arrows() -> dict[str, set[str]]:
    """Part -> the parts it imports."""
    found: dict[str, set[str]] = {}
    for file in files():
        found.setdefault(part(file), set()).update(imported(file))
    return found


def floors(graph: dict[str, set[str]]) -> list[list[str]]:
    """The parts floor by floor: each imports from floors below it only. ValueError names the parts of a circle."""
    left, below, found = dict(graph), set[str](), []
    while left:
        floor = sorted(name for name, of in left.items() if of <= below)
        if not floor:
            raise ValueError(f"a circle of imports among {sorted(left)}")
        found.append(floor)
        below |= set(floor)
        left = {name: of for name, of in left.items() if name not in below}
    return found


def functions() -> Iterator[tuple[int, str]]:
    """Lines of every function, its docstring left out, and where it is."""
    for file in files():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                yield lines, f"{file.relative_to(PACKAGE)}:{node.lineno} {node.name}"


def type_names(file: Path) -> set[str]:
    """The public classes and aliases of types that a module defines; an alias is a name in CamelCase."""
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if re.fullmatch(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name)}


def beside() -> list[str]:
    """The modules that lie beside the packages."""
    return sorted(file.name for file in PACKAGE.glob("*.py") if file.name != "__init__.py")


def lines_of(file: Path) -> int:
    """Lines of a file."""
    return len(file.read_text().splitlines())


def figures() -> dict[str, int]:
    """What LIMITS bounds, as it is."""
    lengths = sorted(lines for lines, _ in functions())
    return {
        "median": int(statistics.median(lengths)),
        "p90": lengths[int(0.9 * len(lengths))],
        "longest": lengths[-1],
        "file": max(map(lines_of, files())),
        "service.py": lines_of(PACKAGE / "service.py"),
        "beside": len(beside()),
    }


def _print() -> None:
    graph = arrows()
    for number, floor in enumerate(floors(graph)):
        for name in floor:
            of = [file for file in files() if part(file) == name]
            print(
                f"{number:3} {name:14} {len(of):3} modules {sum(map(lines_of, of)):6} lines", "->", *sorted(graph[name])
            )
    print(f"\n{len(files())} modules, {sum(map(lines_of, files()))} lines, no circle; beside the packages: {beside()}")
    for name, value in figures().items():
        print(f"{name:11} {value:4} (at most {LIMITS[name]})")
    print("the longest:", *(f"\n  {lines:4} {where}" for lines, where in sorted(functions(), reverse=True)[:5]))
    print(*(f"\n  {lines_of(file):4} {file.relative_to(PACKAGE)}" for file in sorted(files(), key=lines_of)[-5:]))


if __name__ == "__main__":
    _print()
