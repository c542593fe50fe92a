"""Each row of the precedence tables is needed: without it the capture it names is read otherwise."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.captures.loading import traces
from tests.spans import read
from tracescore.interactions import contexts, fields, worth

_TABLES = ((fields, "QUESTIONS"), (fields, "ANSWERS"), (contexts, "SOURCES"), (worth, "FLOW_RULES"))


def _rows() -> list[Any]:
    return [
        pytest.param(module, table, row, id=f"{table}: {row.name}")
        for module, table in _TABLES
        for row in getattr(module, table)
    ]


def _said(name: str) -> list[Any]:
    return [(i.span_id, i.question, i.answer, i.contexts) for trace in traces(name) for i in read(trace)]


@pytest.mark.parametrize(("module", "table", "row"), _rows())
def test_without_the_row_its_capture_is_read_otherwise(
    module: ModuleType, table: str, row: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _said(row.capture)
    monkeypatch.setattr(module, table, tuple(other for other in getattr(module, table) if other is not row))
    assert _said(row.capture) != whole
