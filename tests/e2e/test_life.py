"""The life of the process with a judge on the network: start, loss of the judge, refusal, the end."""

from __future__ import annotations

import re
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from tests.openai_server import OpenAIServer, Reply, sensible
from tests.otlp_sink import otlp_sink
from tests.running import FREE_PORTS, Running, run, serving
from tests.sample_app import GOOD, answer, provider

CAPTURES = Path(__file__).parent.parent / "captures"
MEASURES = ("answer_relevancy", "completeness", "faithfulness")


def settings(judge: OpenAIServer, more: str = "") -> str:
    return f"{FREE_PORTS}assembly: {{idle: 200ms}}\n{judge.settings}{more}"


def ask(service: Running, count: int) -> None:
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
    for _ in range(count):
        answer(app.get_tracer("app"), GOOD)
    app.shutdown()


def endings(service: Running) -> dict[str, dict[str, int]]:
    """What the last lines of the log say became of the evaluations, by measure."""
    lines = [line for line in service.log if "event=stopped" in line]
    found = [dict(re.findall(r"(\w+)=(\w+)", line)) for line in lines]
    counts = ("scored", "unscored", "skipped", "shed", "pending")
    return {row["measure"]: {name: int(row[name]) for name in counts} for row in found}


@pytest.mark.parametrize("slow", [0.0, 1.0, 60.0], ids=["a quick judge", "a slow judge", "a judge that hangs"])
def test_sigterm_drains_and_everything_received_is_exported_or_counted(
    tmp_path: Path, judge: OpenAIServer, slow: float
) -> None:
    judge.script = lambda request: replace(sensible(request), delay=0.0 if request.is_probe else slow)
    count = 30
    with otlp_sink() as sink, serving(tmp_path, settings(judge, "shutdown_grace: 4s\n"), "--otlp-out", sink.http) as s:
        ask(s, count)
        assert s.value("tracescore_receiver_spans_total") == 3 * count
        assert s.terminate() == 0
        s.join()
        ends = endings(s)
        assert set(ends) == set(MEASURES), s.log
        delivered = [log["attributes"]["gen_ai.evaluation.name"] for log in sink.received().logs]
        for measure, counts in ends.items():
            assert sum(counts.values()) == count, counts
            assert counts["pending"] == 0
            assert delivered.count(measure) == counts["scored"] + counts["unscored"], s.log
        assert (ends["completeness"]["shed"] == count) == (slow == 60.0)


def test_a_judge_that_cannot_be_reached_is_waited_for_while_spans_are_received(
    tmp_path: Path, judge: OpenAIServer
) -> None:
    away = True
    judge.script = lambda request: Reply.error(503) if away else sensible(request)
    with serving(tmp_path, settings(judge)) as service:
        ask(service, 2)
        service.wait_value(2, "tracescore_evaluations_pending", measure="faithfulness")
        assert service.value("tracescore_judge_ready") == 0
        service.get("metrics", "/-/ready")
        away = False
        service.wait_value(2, "tracescore_evaluations_total", outcome="scored", measure="faithfulness")
        assert service.value("tracescore_judge_ready") == 1
        assert service.value("tracescore_evaluations_total", outcome="unscored") == 0


def test_a_judge_that_is_lost_on_the_way_is_waited_for_and_nothing_is_lost(tmp_path: Path, judge: OpenAIServer) -> None:
    away = False
    judge.script = lambda request: Reply(disconnect=True) if away else sensible(request)
    with serving(tmp_path, settings(judge)) as service:
        ask(service, 1)
        service.wait_value(1, "tracescore_evaluations_total", outcome="scored", measure="faithfulness")
        away = True
        ask(service, 2)
        service.wait_value(2, "tracescore_evaluations_pending", measure="faithfulness")
        service.wait_log("event=judge_unreachable")
        away = False
        service.wait_value(3, "tracescore_evaluations_total", outcome="scored", measure="faithfulness")
        assert service.value("tracescore_evaluations_total", outcome="unscored") == 0


def test_when_no_content_is_recorded_the_log_names_the_switch(tmp_path: Path, judge: OpenAIServer) -> None:
    with serving(tmp_path, settings(judge)) as service:
        for body in sorted(CAPTURES.glob("openai-v2-nocontent.*.pb")):
            url = f"http://{service.addresses['http']}/v1/traces"
            headers = {"Content-Type": "application/x-protobuf"}
            urllib.request.urlopen(urllib.request.Request(url, body.read_bytes(), headers), timeout=10).close()
        service.wait_log("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
        assert [line for line in service.log if "genai_spans=" in line and "level=warning" in line]
        service.wait_value(8, "tracescore_interactions_total")
        assert service.value("tracescore_interactions_total", state="content_not_captured") == 6
        assert service.value("tracescore_interactions_total", state="app_error") == 2


def test_a_judge_that_cannot_do_the_work_ends_the_start_with_one_line(tmp_path: Path, judge: OpenAIServer) -> None:
    judge.script = lambda request: Reply.error(404, "model_not_found")
    with serving(tmp_path, settings(judge), ready=False) as service:
        assert service.process.wait(60) == 2
        service.join()
        assert not [line for line in service.log if "Traceback" in line], service.log
        assert service.log[-1].startswith("tracescore: judge"), service.log


def test_a_taken_port_ends_the_start_with_one_line(tmp_path: Path, judge: OpenAIServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        file = tmp_path / "c.yaml"
        for name in ("grpc", "http"):
            other = "http" if name == "grpc" else "grpc"
            receiver = f'receiver: {{{name}: {{listen: "{address}"}}, {other}: {{listen: "127.0.0.1:0"}}}}\n'
            file.write_text(receiver + settings(judge).partition("\n")[2])
            done = run("serve", "-c", str(file))
            assert done.returncode == 2
            lines = [line for line in done.stderr.splitlines() if "level=" not in line]
            wrong = f"receiver.{name}.listen: cannot listen on {address}: Address already in use"
            (line,) = lines
            assert line.startswith(f"tracescore: {wrong}; another tracescore or a collector may use it")


def test_wrong_settings_are_one_line_each_and_status_2(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("sampling: {ratio: 2}\nmeasures: [foo]\n")
    done = run("check", str(file))
    assert done.returncode == 2
    assert [line.split(":")[1] for line in done.stderr.splitlines()] == ["1", "2"]


def test_check_with_probe_asks_the_judge_and_the_embedder(tmp_path: Path, judge: OpenAIServer) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(settings(judge))
    done = run("check", "--probe", str(file))
    assert (done.returncode, done.stdout.count("fine")) == (0, 1), done.stderr
    asked = [f"judge m at {judge.url}: ", f"embedder e at {judge.url}: "]
    found = done.stdout.splitlines()[:2]
    assert [line.startswith(each) and "answers" in line for line, each in zip(found, asked, strict=True)] == [
        True,
        True,
    ]
    assert any(request.path.endswith("/embeddings") for request in judge.requests)
    judge.queue(Reply.error(401, "invalid_api_key"), Reply.error(401, "invalid_api_key"))
    done = run("check", "--probe", str(file))
    assert done.returncode == 2
    failed = done.stderr.splitlines()
    assert [line.startswith(f"tracescore: {each}") for line, each in zip(failed, asked, strict=True)] == [True, True]
