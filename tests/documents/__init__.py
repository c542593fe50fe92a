"""The pages of docs/ that are generated from the code."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def pages() -> dict[Path, str]:
    """The text of each generated page."""
    from tests.documents import command_line, configuration, metrics

    return {each.FILE: each.page() for each in (command_line, configuration, metrics)}


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
