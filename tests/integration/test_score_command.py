"""`tracescore score` over a judge on the network: what it asks, says, resumes and spends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.openai_server import OpenAIServer, Reply, openai_server, sensible
from tracescore.cli.main import app

ROWS = [{"question": f"How long is item {n}?", "answer": f"Item {n} is long.", "id": n} for n in range(6)]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


@pytest.fixture
def files(server: OpenAIServer, tmp_path: Path) -> Path:
    """A folder with a configuration, whose measures are one, and the rows, one of them twice."""
    judge = f"judge: {{kind: openai, model: m, base_url: '{server.url}', price: {{input: 1000, output: 0}}}}"
    (tmp_path / "c.yaml").write_text(f"{judge}\nmeasures: [completeness]\n", encoding="utf-8")
    lines = [json.dumps(row) for row in [*ROWS, ROWS[0]]]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def run(files: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["score", str(files / "rows.jsonl"), "-c", str(files / "c.yaml"), *options])


def rows_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_measures_of_the_configuration_are_scored_and_summed_up(server, files) -> None:
    result = run(files)
    assert result.exit_code == 0, result.output
    rows = rows_of(result.stdout)
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4, 5, 0]
    assert all(set(row["scores"]) == {"completeness"} for row in rows)
    said = result.stderr.splitlines()
    assert said[0].startswith(f"judge m at {server.url}: judge-2026-11-30 answers in mode json_schema, ")
    assert said[1].startswith("7 rows, 6 of them different, about 12 calls, which cost about ")
    assert said[-1].startswith("completeness ")
    assert said[-1].endswith(" of 7")


def test_equal_rows_are_asked_about_once_and_cost_once(server, files) -> None:
    rows = rows_of(run(files).stdout)
    assert len(server.prompts) == 12
    assert rows[-1]["scores"] == rows[0]["scores"]
    assert (rows[0]["usage"]["calls"], rows[-1]["usage"]) == (
        2,
        {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "cached": 0},
    )


def test_a_run_that_was_cut_goes_on_where_it_was(server, files) -> None:
    out = files / "out.jsonl"
    assert run(files, "--out", str(out)).exit_code == 0
    whole = rows_of(out.read_text())
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    server.requests.clear()
    assert run(files, "--out", str(out), "--resume").exit_code == 0
    again = rows_of(out.read_text())
    assert [(row["id"], row["scores"]) for row in again] == [(row["id"], row["scores"]) for row in whole]
    assert len(server.prompts) == 6


def test_rows_of_another_judge_are_not_mixed_with_these(files) -> None:
    out = files / "out.jsonl"
    out.write_text(json.dumps(ROWS[0] | {"scores": {}, "judge": "other", "usage": {}}) + "\n")
    result = run(files, "--out", str(out), "--resume")
    assert result.exit_code != 0
    assert "line 1: scored by judge other, not by m" in str(result.exception)


def test_no_more_is_spent_than_allowed(server, files) -> None:
    result = run(files, "--max-cost", "5")
    assert result.exit_code == 1
    rows = rows_of(result.stdout)
    assert 0 < len(rows) < 7
    assert len(server.requests) <= 5, "a request costs 1, those of the probe as well"
    assert "of --max-cost 5 is spent" in result.stderr


def test_a_row_that_the_limit_of_money_cuts_is_left_for_the_next_run(server, files) -> None:
    out = files / "out.jsonl"
    result = run(files, "--max-cost", "3", "--out", str(out))
    assert result.exit_code == 1
    assert out.read_text() == "", "the probe cost 2, the row needs 2 and got 1"
    assert "stopped after 0 rows: 3 of --max-cost 3 is spent; with --out FILE --resume" in result.stderr
    assert run(files, "--max-cost", "100", "--out", str(out), "--resume").exit_code == 0
    assert all(row["scores"]["completeness"]["value"] is not None for row in rows_of(out.read_text()))


def test_a_mode_that_was_lowered_is_said(server, files) -> None:
    server.script = lambda r: sensible(r) if not r.body.get("response_format") else _refused()
    assert "answers in mode text (json_schema does not work here)" in run(files).stderr


def _refused() -> Reply:
    return Reply.error(400, "unsupported_parameter", "response_format is not supported", "response_format")
