"""Lists as files: that nothing is lost, nothing is run by a spreadsheet, and nothing is made before it is sent."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import NOW, result
from tests.web_results import evaluations
from tracescore.model import Result, Score, Unscored
from tracescore.net.asgi import Response, respond
from tracescore.web.export import csv_of, csv_of_groups, defused, jsonl_of
from tracescore.web.finding import Repeated, Spread
from tracescore.web.recent import ScoreGroup

HOSTILE = ("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", " =1", "\u00a0=1", "\uff1d1", "\uff0b1", "\uff20x")


def rows_of(pieces: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(pieces).decode(), newline="")))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert defused(text) == f"'{text}"
    fields = dict.fromkeys(("question", "answer", "service", "release", "environment"), text)
    row = rows_of(csv_of([result(**fields, slices={"route": text})]))[0]
    for name in ("question", "answer", "service", "release", "environment", "route"):
        assert row[name] == f"'{text}"


@pytest.mark.parametrize("text", ["", "Where?", "1-2", "a=b", "'=1", "  ", "e@x.example", "\u22125"])
def test_any_other_cell_stays_as_it_is(text: str) -> None:
    assert defused(text) == text


@given(st.text())
def test_no_cell_begins_like_a_formula(text: str) -> None:
    cell = rows_of(csv_of([result(question=text)]))[0]["question"]
    assert cell.lstrip(" ")[:1] not in tuple("=+-@\t\r")


def test_a_row_holds_scores_reasons_and_where_the_interaction_is_from() -> None:
    evaluated = (Score("answer_relevancy", 0.0, "noncommittal"), Unscored("faithfulness", "judge_incomplete"))
    told = {"slices": {"route": "/ask", "tenant": "acme"}, "contexts": ("a", "b"), "weight": 4.0}
    rows = rows_of(csv_of([result(*evaluated, ended=NOW, **told), result(*evaluations(0.25), number=2, question=None)]))
    assert rows[0] | {
        "ended": "2027-01-15T08:00:00.000Z", "service": "shop", "release": "1.4.2", "environment": "production",
        "route": "/ask", "tenant": "acme", "turn": "", "state": "complete", "passages": "2", "weight": "4.0",
        "answer_relevancy": "0.0", "answer_relevancy_reason": "noncommittal",
        "faithfulness": "", "faithfulness_reason": "judge_incomplete", "completeness": "", "completeness_reason": "",
    } == rows[0]  # fmt: skip
    assert (rows[1]["answer_relevancy"], rows[1]["question"]) == ("0.25", "")


def test_a_row_of_a_group_holds_mean_and_spread_of_each_measure() -> None:
    members = [result(number=1, question="=cmd"), result(number=2)]
    group = Repeated(ScoreGroup("shop", "j", 0), members, {"faithfulness": Spread(0.5, 0.25, 0.75, 0.35, 2)})
    row = rows_of(csv_of_groups([group]))[0]
    assert (row["question"], row["asked"], row["faithfulness_mean"], row["faithfulness_count"]) == (
        "'=cmd",
        "2",
        "0.5",
        "2",
    )
    assert (row["faithfulness_lowest"], row["faithfulness_highest"]) == ("0.25", "0.75")


def test_a_file_without_rows_has_its_head() -> None:
    assert b"".join(csv_of([])).startswith(b"ended,trace_id,span_id,")
    assert b"".join(jsonl_of([])) == b""


def test_half_a_surrogate_pair_spoils_neither_file() -> None:
    assert rows_of(csv_of([result(question="\ud800 x")]))[0]["question"] == "? x"
    assert json.loads(b"".join(jsonl_of([{"question": "\ud800 x"}]))) == {"question": "? x"}


def test_rows_are_made_when_those_before_them_are_on_their_way() -> None:
    made = 0

    def rows():
        nonlocal made
        for number in range(10_000):
            made += 1
            yield {"number": number}

    pieces = jsonl_of(rows())
    next(pieces)
    assert made < 100
    assert sum(piece.count(b"\n") for piece in pieces) > 9_900


@pytest.mark.anyio
@pytest.mark.parametrize("with_body", [True, False])
async def test_a_response_of_pieces_sends_each_on_its_own_and_no_length(with_body: bool) -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    await respond(send, Response(200, b"head", pieces=iter([b"a", b"b"])), with_body=with_body)
    start, *bodies = sent
    assert not [name for name, _ in start["headers"] if name == b"content-length"]
    assert [each["body"] for each in bodies] == ([b"head", b"a", b"b", b""] if with_body else [b""])
    assert not bodies[-1].get("more_body")


def test_every_result_of_a_long_list_is_in_the_file_once() -> None:
    many: list[Result] = [result(number=number) for number in range(1, 251)]
    assert [int(row["trace_id"], 16) for row in rows_of(csv_of(many))] == list(range(1, 251))
