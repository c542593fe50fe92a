"""`tracescore score`, `inspect` and `demo` as they are typed, with the embedded judge."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.otlp import span, traces
from tests.running import run
from tracescore.config import DEFAULT_MEASURES

CAPTURES = Path(__file__).parent.parent / "captures"
local = pytest.mark.local

RATE = {
    "question": "What is the current federal funds rate?",
    "answer": "The rate is 4 percent.",
    "contexts": ["At its last meeting the committee set the federal funds rate at 4 percent."],
    "reference": "The federal funds rate is 5.5 percent.",
}
WINDOW = {
    "question": "What is the return window, and does it cover opened items?",
    "answer": "You can return items within 30 days of purchase.",
}
RESET = "How do I reset my password?"
POLICY = "Our security team enforces a 90-day password rotation policy and requires 12-character minimums."
LINK = "Choose Forgot password on the sign-in page and follow the link we send you by e-mail."


def scored(tmp_path: Path, *rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("score", str(file))
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["scores"] for line in done.stdout.splitlines()]


@local
def test_the_worked_examples_come_out_with_the_embedded_judge(tmp_path: Path) -> None:
    off_topic, good = {"question": RESET, "answer": POLICY}, {"question": RESET, "answer": LINK}
    rate, window, low, high = scored(tmp_path, RATE, WINDOW, off_topic, good)
    assert rate["faithfulness"]["value"] == 1.0
    assert rate["answer_correctness"]["factual"] == 0.0
    assert 0 < rate["answer_correctness"]["similarity"] <= 1
    assert [item["credit"] for item in window["completeness"]["items"]] == [1.0, 0.0]
    assert window["completeness"]["value"] == 0.5
    assert low["answer_relevancy"]["value"] < high["answer_relevancy"]["value"] - 0.1


@local
def test_what_cannot_be_measured_has_a_reason_and_no_value(tmp_path: Path) -> None:
    (without,) = scored(tmp_path, WINDOW)
    assert without["faithfulness"]["value"] is None
    assert without["faithfulness"]["reason"] == "no_contexts"
    assert without["answer_correctness"]["reason"] == "no_reference"


@local
def test_a_follow_up_needs_a_judge_that_reads_the_history(tmp_path: Path) -> None:
    history = [{"role": "user", "content": WINDOW["question"]}, {"role": "assistant", "content": "30 days."}]
    (later,) = scored(tmp_path, {"question": "And for opened items?", "answer": "No.", "history": history})
    assert {later[measure]["reason"] for measure in ("answer_relevancy", "completeness")} == {"needs_history"}


@local
def test_a_broken_line_is_named_and_the_rest_is_scored(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    misspelt = '{"question": "Who?", "anwser": "I."}'
    file.write_text(f'{json.dumps(RATE)}\nnot json\n{{"question": 1}}\n\n{json.dumps(WINDOW)}\n{misspelt}\n')
    done = run("score", str(file))
    assert done.returncode == 2
    assert re.findall(r"jsonl: (line \d+):", done.stderr) == ["line 2", "line 3", "line 6"]
    assert "anwser: unknown key; did you mean 'answer'?" in done.stderr.splitlines()[-1]
    assert len(done.stdout.splitlines()) == 2


@local
def test_the_demo_tells_bad_answers_from_good_ones_and_ends_by_itself_whatever_the_terminal_and_environment() -> None:
    of_other_apps = {
        "OTEL_BSP_MAX_QUEUE_SIZE": "1",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "x",
        "OTEL_SDK_DISABLED": "true",
    }
    done = run("demo", "--exit-after", "10", PYTHONIOENCODING="ascii", **of_other_apps)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum("relevancy" in line and "faithfulness" in line for line in done.stdout.splitlines()[:-9]) == 10
    assert "off-topic" in done.stdout
    assert "/metrics" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--send-to", "http://127.0.0.1:4317"), "HOST:PORT expected"),
        (("--send-to", "4317"), "HOST:PORT expected"),
        (("--send-to", "127.0.0.1:4317", "--exit-after", "1"), "use one of them"),
    ],
)
def test_the_sample_app_alone_refuses_what_it_cannot_do_with_one_line(arguments: tuple[str, ...], what: str) -> None:
    done = run("demo", *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert what in line


def test_inspect_prints_a_json_line_for_every_interaction() -> None:
    name = "llamaindex-openinference"
    files = sorted(map(str, CAPTURES.glob(f"{name}.*.pb")))
    done = run("inspect", "--explain", *files)
    rows = [row for line in done.stdout.splitlines() if "span_id" in (row := json.loads(line))]
    expected = json.loads((CAPTURES / f"{name}.expected.json").read_text())["interactions"]
    assert [row["span_id"] for row in rows] == [want["root_span_id"] for want in expected]
    keys = {"trace_id", "span_id", "service", "release", "environment", "convention", "state", "question", "answer"}
    assert all(keys | {"contexts", "context_source", "found"} <= set(row) for row in rows)


def test_inspect_reads_a_span_that_is_there_twice_as_the_service_does(tmp_path: Path) -> None:
    begun = span(1, name="rag", attrs={"openinference.span.kind": "CHAIN", "input.value": "q"}, end_time_unix_nano=1)
    ended = span(1, name="rag", attrs={"openinference.span.kind": "CHAIN", "input.value": "q", "output.value": "a"})
    ended.end_time_unix_nano = 2
    call = span(2, 1, attrs={"openinference.span.kind": "LLM", "input.value": "q", "output.value": "a"})
    (tmp_path / "both.pb").write_bytes(traces([begun, call, ended]).SerializeToString())
    (row,) = [json.loads(line) for line in run("inspect", str(tmp_path / "both.pb")).stdout.splitlines()]
    assert (row["question"], row["answer"]) == ("q", "a")


def test_inspect_refuses_files_that_are_no_otlp_with_a_line_each_and_reads_the_others(tmp_path: Path) -> None:
    strange = {"x.pb": "\xff\xff", "a.json": '{"some": "thing"}', "b.json": "[1]", "c.json": '{"resourceMetrics": []}'}
    for name, content in strange.items():
        (tmp_path / name).write_text(content)
    good = str(CAPTURES / "llamaindex-openinference.018.traces.pb")
    done = run("inspect", *(str(tmp_path / name) for name in strange), good, PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    for line, name in zip(done.stderr.splitlines(), strange, strict=True):
        assert line.startswith(f"tracescore: {tmp_path / name}: ")
    assert done.stdout == run("inspect", good).stdout != ""


def test_without_the_local_extra_serve_says_in_one_line_what_to_install_or_configure(tmp_path: Path) -> None:
    # A package of that name that cannot be imported stands for one that is not installed.
    (tmp_path / "onnxruntime.py").write_text("raise ModuleNotFoundError(name='onnxruntime')\n")
    done = run("serve", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "pip install '.[local]'" in line
    assert "a judge of kind openai" in line


def test_ctrl_c_while_it_starts_ends_it_without_a_traceback(tmp_path: Path) -> None:
    # In place of one of the packages that are imported at the start, so that it comes at that very moment.
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    begin = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    done = subprocess.run(
        [sys.executable, "-c", f"{begin} runpy.run_module('tracescore', run_name='__main__')", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


EVERYTHING = """
spool: {{path: {here}/spool}}
judge: {{kind: {judge}}}
drift: {{anchors: {here}/anchors.jsonl, labels: {{path: {here}/labels}}}}
exporters: {{forward: {{http: "http://127.0.0.1:9", attach: hold}}, phoenix: {{endpoint: "http://127.0.0.1:9"}}}}
gold: {{set: {here}/set.jsonl, store: {here}/runs, target: {{kind: http, url: "http://127.0.0.1:9"}}}}
"""
WATCHED = """
import json, sys
opened = []
outside = ("socket.bind", "socket.connect", "socket.getaddrinfo", "sqlite3.connect", "subprocess.Popen")
sys.addaudithook(lambda event, _: opened.append(event) if event in outside else None)
from tracescore.cli.main import main
try:
    main()
finally:
    print(json.dumps([opened, sorted(sys.modules)]), file=sys.stderr)
"""
MODELS = {"torch", "transformers", "sentence_transformers", "onnxruntime", "tokenizers", "openai", "tracescore.service"}


@pytest.mark.parametrize("judge", ["embedded", 'openai, model: m, base_url: "http://127.0.0.1:9"'])
def test_check_opens_nothing_and_loads_no_model_for_a_file_that_uses_everything(tmp_path: Path, judge: str) -> None:
    anchor = {"question": "Who?", "answer": "I.", "contexts": ["It was I."]}
    (tmp_path / "anchors.jsonl").write_text(f"{json.dumps(anchor)}\n" * 2)
    (tmp_path / "set.jsonl").write_text('{"question": "Who?", "reference": "I."}\n')
    (tmp_path / "c.yaml").write_text(EVERYTHING.format(here=tmp_path, judge=judge))
    before = sorted(tmp_path.iterdir())
    done = watched("check", str(tmp_path / "c.yaml"))
    assert done.returncode == 0, done.stderr
    name = "m" if "model" in judge else "embedded-v2"
    assert done.stdout.endswith(f"fine; judge {name}, measures {', '.join(DEFAULT_MEASURES)}, gold set set\n")
    opened, modules = json.loads(done.stderr)
    assert (opened, MODELS & set(modules)) == ([], set())
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "not_needed"),
    [
        (["--help"], {"numpy", "pydantic", "yaml", "grpc", "aiohttp", "prometheus_client", "rich.progress"}),
        (["check", "FILE"], {"grpc", "aiohttp", "prometheus_client", "rich.progress", "tracescore.drift"}),
        (["inspect", "CAPTURE"], {"grpc", "aiohttp", "rich.progress", "tracescore.drift", "tracescore.judge"}),
    ],
)
def test_a_command_imports_what_it_needs(tmp_path: Path, arguments: list[str], not_needed: set[str]) -> None:
    (tmp_path / "c.yaml").write_text("sampling: {ratio: 0.5}\n")
    files = {"FILE": str(tmp_path / "c.yaml"), "CAPTURE": str(next(CAPTURES.glob("*.pb")))}
    done = watched(*(files.get(each, each) for each in arguments))
    assert done.returncode == 0, done.stderr
    assert (MODELS | not_needed) & set(json.loads(done.stderr)[1]) == set()


def watched(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command; the error output ends with what it opened and which modules it imported."""
    command = [sys.executable, "-c", WATCHED, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
