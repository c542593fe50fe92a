"""The rows of the drift benchmark, with few streams: what is promised of false alarms and delays is kept."""

from __future__ import annotations

import pytest

from tests.benchmarks.drift import calendar, core, estimated, pipeline, traffic


@pytest.mark.parametrize("part", [core, estimated, calendar, pipeline, traffic], ids=lambda part: part.__name__)
def test_every_row_is_accepted(part) -> None:
    rows = list(part(0.05))
    assert rows
    assert [row for row in rows if not row.accepted] == []
