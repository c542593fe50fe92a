"""What a list shows as a file, piece by piece, so that ten thousand interactions never stand in memory as text.

CSV has a row for each interaction (or each question, where they are grouped) for spreadsheets, JSONL everything that is
kept of it; `tracescore score` reads the latter.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tracescore.model import Evaluation, Measure, Result, Score
from tracescore.web.choice import SLICES
from tracescore.web.finding import Repeated
from tracescore.web.messages import json_bytes
from tracescore.web.recent import in_order
from tracescore.web.views import instant

_FORMULA = frozenset("=+-@\t\r\n")
"""A spreadsheet takes a cell that begins with one of these for a formula.

Source: OWASP, CSV Injection. Full-width forms count as well, and blanks in front do not help.
"""
_ROWS = 20
"""Rows of a piece."""


def defused(text: str) -> str:
    """A cell that no spreadsheet runs: with an apostrophe in front where it would be a formula."""
    first = text.lstrip(" \u00a0\u3000\ufeff")[:1]
    return f"'{text}" if first and unicodedata.normalize("NFKC", first) in _FORMULA else text


def csv_of(results: Sequence[Result]) -> Iterator[bytes]:
    """A row for each interaction, under one of names. A score that is not there is an empty cell beside its reason."""
    measures = in_order({each.measure for result in results for each in result.evaluations})
    told = ("ended", "trace_id", "span_id", "service", "environment", "release", *SLICES, "state", "question", "answer")
    head = [*told, "passages", "judge", "epoch", "weight"]
    for measure in measures:
        head += [measure, f"{measure}_reason"]
    yield from _csv(head, results, lambda result: _cells(result, measures))


def _cells(result: Result, measures: Iterable[Measure]) -> list[object]:
    told = result.interaction
    cells: list[object] = [instant(result.ended), told.trace_id, told.span_id, told.service, told.environment]
    cells += [told.release, *(told.slices.get(key, "") for key in SLICES), told.state, told.question, told.answer]
    cells += [len(told.contexts), result.judge, result.epoch, told.weight]
    for measure in measures:
        cells += _outcome(next((each for each in result.evaluations if each.measure == measure), None))
    return cells


def _outcome(evaluation: Evaluation | None) -> tuple[float | None, str]:
    if evaluation is None:
        return None, ""
    return (evaluation.value, evaluation.label) if isinstance(evaluation, Score) else (None, evaluation.reason)


def csv_of_groups(groups: Sequence[Repeated]) -> Iterator[bytes]:
    """A row for each question."""
    measures = in_order({measure for group in groups for measure in group.spreads})
    figures = ("mean", "lowest", "highest", "deviation", "count")
    head = ["service", "judge", "epoch", "question", "asked", "last_asked"]
    head += [f"{measure}_{figure}" for measure in measures for figure in figures]

    def cells(group: Repeated) -> list[object]:
        newest = group.newest
        row: list[object] = [group.of.service, group.of.judge, group.of.epoch, newest.interaction.question]
        row += [len(group.results), instant(newest.ended)]
        for measure in measures:
            spread = group.spreads.get(measure)
            row += [None if spread is None else getattr(spread, figure) for figure in figures]
        return row

    yield from _csv(head, groups, cells)


def _csv(head: Sequence[str], rows: Iterable[Any], cells: Callable[[Any], Sequence[object]]) -> Iterator[bytes]:
    piece = io.StringIO(newline="")
    write = csv.writer(piece).writerow
    write(head)
    for number, row in enumerate(rows, 1):
        write([defused(cell) if isinstance(cell, str) else cell for cell in cells(row)])
        if number % _ROWS == 0:
            yield piece.getvalue().encode(errors="replace")
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue().encode(errors="replace")


def jsonl_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """A line of JSON for each row."""
    piece: list[bytes] = []
    for number, row in enumerate(rows, 1):
        piece.append(json_bytes(row) + b"\n")
        if number % _ROWS == 0:
            yield b"".join(piece)
            piece.clear()
    yield b"".join(piece)
