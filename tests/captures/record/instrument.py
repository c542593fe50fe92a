"""Writes docs/instrument.md from the recordings' expectations: `python -m tests.captures.record.instrument`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parent.parent
PAGE = CAPTURES.parent.parent / "docs/instrument.md"
_HEAD = """\
# Instrumenting your app

tracescore reads what your instrumentation records. Send its OTLP export to tracescore (`OTEL_EXPORTER_OTLP_ENDPOINT`),
and see with `tracescore inspect --explain` what is read out of it. Nothing can be scored that was not recorded: the
first table names the settings that record questions, answers and passages.

Everything below was recorded by running the library against a scripted model, and
`python -m tests.captures.record.instrument` writes this page from the recordings. To record another library or version,
see [tests/captures/record](../tests/captures/record).

## Settings that record content

The first row that fits counts. An instrumentation without a row follows the [table of conventions](conventions.md).

| instrumentation scope | versions | settings |
|---|---|---|
"""
_LIBRARIES = """
## Libraries

Question, answer and passages: the attribute (`event` or `log` before it: of an event or a log record) that holds the
text in the recording. "in the prompt" means that no span lists the passages, only the prompt to the model holds them.

| recording | ran with | question | answer | passages | settings in the recording |
|---|---|---|---|---|---|
"""


def expectations() -> list[dict[str, Any]]:
    """What must be read out of each recording, by name."""
    return sorted((json.loads(path.read_text()) for path in CAPTURES.rglob("*.expected.json")), key=lambda e: e["name"])


def page() -> str:
    """The text of docs/instrument.md."""
    rows = [_row(wanted) for wanted in expectations() if wanted.get("recorded", True)]
    return _HEAD + "".join(_switches()) + _LIBRARIES + "".join(rows)


def _switches() -> Iterator[str]:
    from tracescore.interactions.switches import SWITCHES

    for row in SWITCHES:
        since = ".".join(map(str, row.since))
        versions = f"{since} and later" if since else "all"
        yield f"| `{row.scope}` | {versions} | {_cell(row.settings)} |\n"


def _row(wanted: dict[str, Any]) -> str:
    told = next((one for one in wanted["interactions"] if one.get("found_at")), {})
    found = told.get("found_at", {})
    cells = [_keys(found.get(field)) for field in ("question", "answer", "contexts")]
    if told.get("contexts_in_prompt") and not told.get("contexts"):
        cells[2] = f"in the prompt: {cells[2]}"
    switches = _cell(wanted.get("switches") or wanted["special"])
    ran = _cell(f"{wanted['library']}; {wanted['instrumentation']}")
    return f"| {wanted['name']} | {ran} | {cells[0]} | {cells[1]} | {cells[2]} | {switches} |\n"


def _keys(places: list[str] | None) -> str:
    keys = dict.fromkeys(re.sub(r"\d+", "N", place.split(" @ ")[-1]) for place in places or [])
    return ", ".join(f"`{key}`" for key in list(keys)[:2]) or "not recorded"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description="Writes docs/instrument.md from the expectations of the recordings.")
    parser.add_argument("--out", type=Path, default=PAGE, help="default: %(default)s")
    parser.parse_args().out.write_text(page())


if __name__ == "__main__":
    main()
