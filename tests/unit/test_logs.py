"""What stands in the log, and what never does."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from tracescore import logs

PACKAGE = Path(logs.__file__).parent
LINE = re.compile(r'event=defect exporter=otlp signal=logs error=ValueError at="\S+:\d+:inner < \S+:\d+:test_\w+"')


def inner() -> None:
    raise ValueError("my secret question")


def test_a_defect_is_logged_with_its_place_and_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    try:
        inner()
    except ValueError as error:
        logs.defect(logging.getLogger("tracescore.exporters"), error, exporter="otlp", signal="logs")
    (record,) = caplog.records
    assert LINE.fullmatch(record.getMessage())
    assert record.exc_info is None
    assert "secret" not in caplog.text


@pytest.mark.parametrize("habit", [r"\.exception\(", "exc_info", "stack_info", r"^(logger|log) = "])
def test_no_traceback_with_the_text_of_an_error_gets_into_the_log(habit: str) -> None:
    """Python's own ways to log an error print its text; loggers have one name, so that this search finds them."""
    users = [file.name for file in PACKAGE.rglob("*.py") if re.search(habit, file.read_text(), re.MULTILINE)]
    assert not users, users


def test_every_line_of_the_log_names_its_event() -> None:
    calls = re.compile(r"_log\.(?:debug|info|warning|error)\(\s*f?(.{0,20})", re.DOTALL)
    for file in PACKAGE.rglob("*.py"):
        for begun in calls.findall(file.read_text()):
            assert begun.lstrip("'\"").startswith("event=") or begun.startswith("line"), (file.name, begun)
