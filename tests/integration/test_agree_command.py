"""`tracescore agree`: two judges on the same rows, and one judge asked several times."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.openai_server import Reply, openai_server, sensible
from tracescore.calibration.agreement import kappa
from tracescore.cli.main import app

ROWS = [{"question": f"How long is item {n}?", "answer": f"Item {n} is long."} for n in range(8)]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("a", "a"), ("b", "b")], 1.0),
        ([("a", "b"), ("b", "a")], -1.0),
        ([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")], 0.0),
        ([("a", "a")] * 20 + [("a", "b")] * 5 + [("b", "a")] * 10 + [("b", "b")] * 15, 0.4),
        ([("a", "a")] * 3, None),
        ([], None),
    ],
)
def test_kappa_is_agreement_beyond_chance(pairs, expected) -> None:
    assert kappa(pairs) == (expected if expected is None else pytest.approx(expected))


def _config(folder: Path, name: str, url: str) -> str:
    file = folder / f"{name}.yaml"
    judge = f"judge: {{kind: openai, model: {name}, base_url: '{url}', price: {{input: 1, output: 1}}}}"
    file.write_text(f"{judge}\nmeasures: [completeness]\n", encoding="utf-8")
    return str(file)


def _rows(folder: Path) -> str:
    file = folder / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    return str(file)


def _covering(word: str):
    def script(request):
        if request.prompt != "verify_coverage":
            return sensible(request)
        quote = request.data["evidence"][0]
        rows = [{"id": r["id"], "quote": quote, "verdict": word} for r in request.data["statements"]]
        return Reply.json({"verdicts": rows})

    return script


def test_two_judges_are_compared_on_the_statements_of_the_first(tmp_path: Path) -> None:
    with openai_server(_covering("covered")) as kind, openai_server(_covering("partial")) as strict:
        configs = ["-c", _config(tmp_path, "kind", kind.url), "-c", _config(tmp_path, "strict", strict.url)]
        result = CliRunner().invoke(app, ["agree", _rows(tmp_path), *configs])
    assert result.exit_code == 0, result.output
    (second,) = result.stdout.splitlines()
    assert result.stderr.startswith("8 rows; judge kind: 16 calls, cost 0.0168; judge strict: 16 calls")
    assert second.startswith("completeness: means 1.000 and 0.500, difference +0.500 [")
    assert second.endswith("over 8 rows; 0% of 8 verdicts alike, kappa 0.00")


def test_one_judge_asked_several_times_shows_its_spread(tmp_path: Path) -> None:
    words = itertools.cycle(["covered"] * 8 + ["partial"] * 8)
    with openai_server() as server:
        server.script = lambda r: _covering(next(words))(r) if r.prompt == "verify_coverage" else sensible(r)
        config = ["-c", _config(tmp_path, "m", server.url), "--repeat", "2"]
        result = CliRunner().invoke(app, ["agree", _rows(tmp_path), *config])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == (
        "completeness: mean 0.750; one row asked 2 times: standard deviation 0.354, largest range 0.500, "
        "100% of 8 rows moved"
    )


@pytest.mark.parametrize("options", [["-c", "a"], ["-c", "a", "-c", "b", "--repeat", "2"]])
def test_two_judges_or_one_that_is_repeated(tmp_path: Path, options: list[str]) -> None:
    result = CliRunner().invoke(app, ["agree", _rows(tmp_path), *options])
    assert "give two judges" in str(result.exception)
