"""The demo's table, and whether its scores tell the kinds of answers apart."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from tests.web_results import result
from tracescore.demo.questions import KINDS, AnswerKind
from tracescore.demo.table import DemoTable, printable
from tracescore.demo.tally import DemoTally
from tracescore.model import Measure, Result, Score, Unscored

Means = dict[AnswerKind, dict[Measure, float]]

WELL: Means = {
    "good": {"answer_relevancy": 0.8, "completeness": 0.9, "faithfulness": 0.95},
    "off_topic": {"answer_relevancy": 0.3},
    "half": {"completeness": 0.5},
    "unfaithful": {"faithfulness": 0.4},
}


MARGIN = "expected at least 0.2 less"


def scored(scores: dict[Measure, float], trace_id: str = "0" * 32, question: str = "How long?") -> Result:
    return result(
        tuple(Score(measure, value) for measure, value in scores.items()), trace_id=trace_id, question=question
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"off_topic": {"answer_relevancy": 0.6}}, []),
        (
            {"good": {"answer_relevancy": 0.8, "completeness": 0.7, "faithfulness": 0.95}},
            [],
        ),  # 0.7 - 0.5 < 0.2 in binary
        (
            {"off_topic": {"answer_relevancy": 0.601}},
            ["answer_relevancy: off-topic answers score 0.601 and good ones 0.800; " + MARGIN],
        ),
        (
            {"half": {"completeness": 0.71}},
            ["completeness: half-answered answers score 0.710 and good ones 0.900; " + MARGIN],
        ),
        (
            {"unfaithful": {"faithfulness": 1.0}},
            ["faithfulness: unfaithful answers score 1.000 and good ones 0.950; " + MARGIN],
        ),
        ({"half": {}}, ["completeness: no half-answered answer has a score to compare"]),
        (
            {"good": {"answer_relevancy": 0.8, "faithfulness": 0.95}},
            ["completeness: no good answer has a score to compare"],
        ),
        ({"refused": {"answer_relevancy": 1.0, "completeness": 1.0, "faithfulness": 1.0}}, []),
        ({"off_topic": {"answer_relevancy": 0.3, "completeness": 1.0, "faithfulness": 1.0}}, []),
    ],
)
def test_when_the_scores_tell_the_kinds_apart(changes: Means, expected: list[str]) -> None:
    tally = DemoTally()
    for kind, scores in (WELL | changes).items():
        tally.add(kind, scored(scores))
    assert tally.verdict() == expected


def test_without_any_result_the_verdict_says_so_and_a_kind_that_was_not_asked_is_no_problem() -> None:
    assert DemoTally().verdict() == ["no answer of the sample app was scored"]
    tally = DemoTally()
    tally.add("good", scored(WELL["good"]))
    assert tally.verdict() == []


def test_means_are_over_the_scores_and_not_over_what_could_not_be_scored() -> None:
    tally = DemoTally()
    tally.add("half", scored({"completeness": 0.5}))
    tally.add("half", scored({"completeness": 0.25}))
    tally.add("half", result((Unscored("completeness", "no_parts"),)))
    row = tally.row("half")
    assert (row.answers, row.means, row.counts) == (3, {"completeness": 0.375}, {"completeness": 2})


def test_traces_of_the_user_do_not_enter_the_verdict() -> None:
    tally = DemoTally()
    for kind, scores in WELL.items():
        tally.add(kind, scored(scores))
    for _ in range(50):
        tally.add(None, scored({"answer_relevancy": 0.0, "completeness": 0.0, "faithfulness": 0.0}))
    assert tally.verdict() == []


def table(*, terminal: bool, exit_after: int | None = None, width: int = 120) -> tuple[DemoTable, StringIO]:
    written = StringIO()
    console = Console(file=written, force_terminal=terminal, width=width)
    kinds: dict[str, AnswerKind] = {f"{number:032x}": kind for number, kind in enumerate(KINDS)}
    links = {"page": "http://127.0.0.1:40001/", "metrics": "http://127.0.0.1:40002/metrics"}
    return DemoTable(kinds.get, links, exit_after=exit_after, console=console), written


async def _fill(shown: DemoTable) -> None:
    shown.start()
    for number in range(len(KINDS)):
        await shown.export(scored({"answer_relevancy": number / 10, "completeness": 0.5}, f"{number:032x}"))
    await shown.close()


@pytest.mark.anyio
async def test_without_a_terminal_there_is_a_line_per_answer_and_a_table_at_the_end() -> None:
    shown, written = table(terminal=False)
    await _fill(shown)
    lines = written.getvalue().splitlines()
    assert lines[:2] == ["page     http://127.0.0.1:40001/", "metrics  http://127.0.0.1:40002/metrics"]
    assert lines[2] == "Waiting for the first score ..."
    assert lines[3] == "good           relevancy 0.00  completeness 0.50  faithfulness -  How long?"
    assert lines[6] == "unfaithful     relevancy 0.30  completeness 0.50  faithfulness -  How long?"
    assert "\x1b" not in written.getvalue()
    assert [line.split()[1] for line in lines if line.startswith("│")] == [
        "good",
        "off-topic",
        "half-answered",
        "unfaithful",
        "refused",
    ]


@pytest.mark.anyio
async def test_a_mean_tells_of_how_many_scores_it_is_where_some_are_missing() -> None:
    shown, written = table(terminal=False)
    shown.start()
    await shown.export(scored({"completeness": 0.25}))
    await shown.export(result((Unscored("completeness", "no_parts"),), trace_id="0" * 32))
    await shown.close()
    [row] = [line for line in written.getvalue().splitlines() if line.startswith("│ good")]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["good", "2", "-", "(1) 0.25", "-"]


@pytest.mark.anyio
async def test_a_long_link_is_never_broken_over_two_lines() -> None:
    written = StringIO()
    url = "http://127.0.0.1:40001/login?token=" + "x" * 100
    shown = DemoTable({}.get, {"page": url}, console=Console(file=written, width=40))
    shown.start()
    assert url in written.getvalue()
    await shown.close()


@pytest.mark.anyio
async def test_on_a_terminal_the_last_picture_holds_links_kinds_and_latest_answers() -> None:
    shown, written = table(terminal=True)
    await _fill(shown)
    for text in ("http://127.0.0.1:40001/", "off-topic", "half-answered", "How long?", "0.30"):
        assert text in written.getvalue()


@pytest.mark.anyio
async def test_done_is_set_by_the_number_of_own_answers_whether_scored_or_not() -> None:
    shown, _ = table(terminal=False, exit_after=2)
    shown.start()
    await shown.export(scored({"completeness": 1.0}, "f" * 32))
    await shown.export(scored({"completeness": 1.0}))
    assert not shown.done.is_set()
    assert shown.verdict() == ["only 1 of 2 answers came back in time"]
    await shown.export(result((Unscored("completeness", "judge_timeout"),), trace_id="0" * 32))
    assert shown.done.is_set()
    await shown.close()


@pytest.mark.anyio
async def test_without_a_number_it_is_never_done() -> None:
    shown, _ = table(terminal=False)
    for _ in range(30):
        await shown.export(scored({"completeness": 1.0}))
    assert not shown.done.is_set()


@pytest.mark.anyio
async def test_the_final_table_is_written_once() -> None:
    shown, written = table(terminal=False)
    await _fill(shown)
    await shown.close()
    assert written.getvalue().count("Mean scores") == 1


@pytest.mark.anyio
@pytest.mark.parametrize("terminal", [False, True])
async def test_a_trace_of_the_user_has_a_row_of_its_own_and_cannot_steer_the_terminal(terminal: bool) -> None:
    shown, written = table(terminal=terminal)
    shown.start()
    await shown.export(scored({"completeness": 1.0}, "f" * 32, "\x1b]0;owned\x07 [red]Hi[/red] \u202e?"))
    await shown.close()
    assert "your own" in written.getvalue()
    assert "[red]Hi[/red]" in written.getvalue()
    assert "\x1b]" not in written.getvalue()
    assert "\u202e" not in written.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n\tb", "a b"), ("x" * 61, "x" * 59 + "…"), ("x" * 60, "x" * 60), ("\x1b[31mred", "[31mred"), ("", "")],
)
def test_printable(text: str, expected: str) -> None:
    assert printable(text) == expected
