"""docs/command-line.md: every command with its arguments and options, from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from tests.documents import DOCS, cell
from tracescore.cli.main import app

FILE = DOCS / "command-line.md"
FIRST = "\n## Commands\n"
HEAD = "| argument or option | meaning | default |\n|---|---|---|\n"


def page() -> str:
    """The text of docs/command-line.md: what is written by hand above the first generated heading, and the rest."""
    head = FILE.read_text(encoding="utf-8").split(FIRST)[0]
    return head + FIRST + "".join(_shown(name, command) for name, command in commands())


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that can be typed, with those inside of others."""
    root: Any = get_command(app)
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {each}", inner[each]) for each in inner) if inner else [(name, command)]


def _shown(name: str, command: Any) -> str:
    arguments = "".join(f" {one.metavar}" for one in command.params if not _is_option(one))
    rows = "".join(map(_row, command.params))
    return f"\n### tracescore {name}{arguments}\n\n{cell(command.help)}\n\n{HEAD}{rows}"


def _row(one: Any) -> str:
    takes = "" if getattr(one, "is_flag", False) else f" {one.metavar}"
    typed = f"`{', '.join(one.opts)}{takes}`" if _is_option(one) else f"`{one.metavar}`"
    default = "required" if one.required else "" if one.default in (None, False) else f"`{one.default}`"
    return f"| {cell(typed)} | {cell(one.help)} | {default} |\n"


def _is_option(one: Any) -> bool:
    return bool(one.opts[0].startswith("-"))
