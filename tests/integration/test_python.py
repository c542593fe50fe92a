"""The public interface in Python: scores from frames and cases, in a notebook, and as a check in tests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracescore
from tests.local_judge import NEEDS_MODEL
from tests.openai_server import OpenAIServer, Reply, openai_server
from tracescore import Case, MeanScore, Measured, ScoredCase, ScoredCases, ascore, score
from tracescore.errors import ConfigError, JudgeError, UsageError
from tracescore.model import Item, Usage
from tracescore.testing import assert_scores

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
ROWS = [{"user_input": f"How long is item {n}?", "response": f"Item {n} is long.", "id": n} for n in range(3)]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


def config(server: OpenAIServer) -> dict[str, object]:
    return {"judge": {"kind": "openai", "model": "m", "base_url": server.url}, "measures": ["completeness"]}


def scored(*values: float | None) -> ScoredCases:
    def case(number: int, value: float | None) -> ScoredCase:
        items = (Item("part", f"part {number}", "missing", credit=0.0), Item("part", "other", "covered", credit=1.0))
        reason = "no_answer" if value is None else None
        found = Measured("completeness", value, reason, items=items)
        return ScoredCase(Case(f"Question {number}?", "A.", id=f"r{number}"), {}, {"completeness": found}, "m", Usage())

    return ScoredCases(tuple(case(number, value) for number, value in enumerate(values)))


def test_importing_tracescore_loads_nothing_and_every_public_name_is_there() -> None:
    code = "import sys, tracescore; print([name for name in sys.modules if name.startswith('tracescore')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['tracescore']\n"
    assert all(hasattr(tracescore, name) for name in tracescore.__all__)
    stub = (Path(tracescore.__file__).parent / "__init__.pyi").read_text()
    assert set(re.findall(r" as (\w+)$|^(\w+):", stub, re.MULTILINE)) == {
        ("", name) if name == "__version__" else (name, "") for name in tracescore.__all__
    }
    with pytest.raises(AttributeError, match="no_such_name"):
        tracescore.no_such_name  # noqa: B018


@pytest.mark.anyio
async def test_scores_come_where_an_event_loop_is_running_as_in_a_notebook(server: OpenAIServer) -> None:
    blocking, awaited = score(ROWS, config=config(server)), await ascore(ROWS, config=config(server))
    assert [each.to_dict()["scores"] for each in blocking] == [each.to_dict()["scores"] for each in awaited]
    assert [each.given for each in blocking] == ROWS
    assert [each.case.id for each in blocking] == ["0", "1", "2"]
    (item,) = {item.kind for each in blocking.of("completeness") for item in each.items}
    assert item == "part"


def test_the_configuration_is_a_file_or_its_sections_by_the_same_rules(server: OpenAIServer, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps(config(server)))
    assert score(ROWS, config=file).means == score(ROWS, config=config(server)).means
    assert score(ROWS, **config(server)).means == score(ROWS, config=file).means
    with pytest.raises(ConfigError, match=r"config:\d+: jugde: unknown setting; did you mean 'judge'"):
        score(ROWS, jugde={"kind": "openai"})
    with pytest.raises(UsageError, match="config and judge: either a configuration or sections expected; got both"):
        score(ROWS, config=file, judge={})
    with pytest.raises(ConfigError, match=r"config:\d+: judge\.modle: unknown setting"):
        score(ROWS, config={"judge": {"kind": "openai", "modle": "m"}})


def test_what_cannot_be_used_is_refused_before_a_judge_is_asked(server: OpenAIServer) -> None:
    with pytest.raises(UsageError, match="measures: faithful: no such measure; known: answer_relevancy, "):
        score(ROWS, measures=["faithful"], config=config(server))
    with pytest.raises(UsageError, match="no row has a question"):
        score([{"prompt": "x"}], config=config(server))
    assert not server.requests


def test_a_claim_names_the_document_that_its_passage_is_from(server: OpenAIServer) -> None:
    handbook = {"page_content": "Item 1 is long.", "metadata": {"source": "handbook.pdf"}}
    row = {"question": "How long is item 1?", "answer": "Item 1 is long.", "contexts": ["Or not.", handbook]}
    case = Case(
        "How long is item 1?", "Item 1 is long.", ["Or not.", "Item 1 is long."], documents=["", "handbook.pdf"]
    )
    for given in (row, case):
        (found,) = score([given], measures=["faithfulness"], judge=config(server)["judge"])
        (claim,) = (item for item in found.scores["faithfulness"].items if item.kind == "claim")
        assert (claim.passage, claim.document) == (1, "handbook.pdf")
    with pytest.raises(UsageError, match="documents: a list with the id of each of the contexts expected"):
        Case("Q?", "A.", ["a", "b"], documents=["a"])


def test_a_judge_that_cannot_be_asked_is_an_error_and_a_row_that_fails_is_none(server: OpenAIServer) -> None:
    rows = [*ROWS, Case("And now?")]
    found = score(rows, config=config(server))
    assert (found[-1].scores["completeness"].value, found[-1].scores["completeness"].reason) == (None, "no_answer")
    assert found.means["completeness"].without == {"no_answer": 1}
    server.script = lambda _: Reply.error(401, "invalid_api_key", "wrong key", None)
    with pytest.raises(JudgeError):
        score(rows, config=config(server))


def test_a_frame_of_scores_keeps_the_columns_and_has_nan_for_what_is_missing() -> None:
    frame = scored(0.5, None).to_pandas()
    assert frame["completeness"].isna().tolist() == [False, True]
    assert frame["completeness"].dtype == "float64"
    assert frame["completeness_reason"].tolist()[1] == "no_answer"
    assert scored(None).to_pandas()["completeness"].dtype == "float64"


def test_a_mean_without_values_is_no_number() -> None:
    mean = scored(None).means["completeness"]
    assert (mean.value != mean.value, mean.lower, mean.upper, mean.count) == (True, 0.0, 1.0, 0)
    assert str(mean).split() == ["-", "of", "0;", "without", "a", "score:", "1", "no_answer"]
    assert isinstance(mean, MeanScore)


# ---------------------------------------------------------------- in tests


@pytest.mark.parametrize(
    ("values", "least", "confident", "fails"),
    [
        ((1.0, 0.5), 0.75, False, False),
        ((1.0, 0.5), 0.76, False, True),
        ((1.0, None), 1.0, False, False),
        ((None, None), 0.0, False, True),
        ((1.0,) * 10, 0.7, True, True),
        ((1.0,) * 11, 0.7, True, False),
    ],
)
def test_a_check_compares_the_mean_or_the_lower_limit(values, least, confident, fails) -> None:
    def check() -> None:
        assert_scores(scored(*values), completeness=least, confident=confident)

    if fails:
        with pytest.raises(AssertionError, match=r"^completeness: "):
            check()
    else:
        check()


def test_a_failure_shows_the_worst_rows_and_what_counted_against_them() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_scores(scored(1.0, 0.25, None, 0.5, 0.0), completeness=0.7)
    assert str(failed.value).splitlines()[:6] == [
        "completeness: mean 0.438 is below 0.7 (95 % interval 0.097 to 0.860, 4 rows)",
        "  rows without a value: 1 no_answer",
        "  0.000  r4: Question 4?",
        "         answered: A.",
        "         part missing: part 4",
        "  0.250  r1: Question 1?",
    ]


def test_too_few_rows_are_told_how_many_it_takes() -> None:
    with pytest.raises(AssertionError, match=r"about 11 rows like these are needed to be confident of 0\.7; there"):
        assert_scores(scored(*[1.0] * 5), completeness=0.7, confident=True)
    with pytest.raises(AssertionError, match="the mean is too close to 1"):
        assert_scores(scored(*[1.0] * 5), completeness=1, confident=True)


@pytest.mark.parametrize("least", [{}, {"faithful": 0.5}, {"completeness": 70}])
def test_a_check_that_checks_nothing_is_refused(least: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="assert_scores: "):
        assert_scores(scored(1.0), **least)


@NEEDS_MODEL[0]
@NEEDS_MODEL[1]
def test_the_page_on_python_goes_from_a_frame_of_ragas_to_a_scored_frame(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)), names)
    frame = names["scored"]
    assert list(frame["faithfulness"]) == [1.0, 0.0]
    assert {"user_input", "retrieved_contexts", "answer_correctness_reason"} <= set(frame.columns)
    assert "contradicted" in capsys.readouterr().out


def test_the_table_of_keys_in_the_docs_is_the_one_that_is_read() -> None:
    from tracescore.datasets.keys import KEYS

    rows = PAGE.read_text().split("## Keys")[1].split("\n\n")[2].splitlines()[2:]
    cells = [[set(re.findall(r"`([^`]+)`", cell)) for cell in row.strip("|").split("|")] for row in rows]
    question, answer, contexts, reference = (set().union(*column) for column in list(zip(*cells, strict=True))[1:])
    shown = [question - {"history"}, answer, contexts, reference, {"history"}]
    assert shown == [{key.path for key in keys} for keys in KEYS.values()]
