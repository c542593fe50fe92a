"""A user is forgotten: nothing of what they wrote is left in any file of the service, nor comes back."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import yaml
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from tests.openai_server import openai_server, sensible
from tests.otlp import span
from tests.otlp import traces as request_of
from tests.running import Running, run, serving
from tests.sample_app import provider
from tests.servers import free_port
from tracescore.cli.page_client import ask
from tracescore.config import WebConfig

WORDS = "Kowalczyk's knee"


def settings(folder: Path, judge: str) -> str:
    config = {
        "receiver": {"grpc": {"listen": "127.0.0.1:0"}, "http": {"listen": "127.0.0.1:0"}},
        "exporters": {"prometheus": {"listen": "127.0.0.1:0"}},
        "web": {"listen": "127.0.0.1:0"},
        "spool": {"path": str(folder / "spool")},
        "assembly": {"idle": "200ms"},
        "drift": {"labels": {"path": str(folder / "labels"), "ratio": 1}},
        "judge": {"kind": "openai", "model": "m", "base_url": judge},
        "embedder": {"kind": "openai", "model": "e", "base_url": judge},
    }
    return yaml.safe_dump(config)


def asked(tracer, user: str, words: str) -> int:
    attributes = {
        "openinference.span.kind": "CHAIN", "input.value": f"What helps {words}?", "user.id": user,
        "output.value": f"Ice helps {words}.", "session.id": f"session of {user}",
    }  # fmt: skip
    with tracer.start_as_current_span("rag", attributes=attributes) as span:
        found = {
            "openinference.span.kind": "RETRIEVER",
            "retrieval.documents.0.document.content": f"Ice helps {words}.",
        }
        with tracer.start_as_current_span("retrieve", attributes=found):
            pass
        return span.get_span_context().trace_id


def holding(folder: Path, words: str) -> list[str]:
    return [file.name for file in folder.iterdir() if file.is_file() and words.encode() in file.read_bytes()]


WHOSE = {"user": "anna", "conversation": "carl", "trace": "dora"}


def words_of(who: str) -> str:
    return f"{WORDS} of number {ord(who[0])}"


def test_what_somebody_wrote_is_gone_from_every_file_and_stays_gone(tmp_path: Path) -> None:
    with openai_server() as judge:
        config = settings(tmp_path, judge.url)
        with serving(tmp_path, config) as service:
            (tmp_path / "spool.damaged").write_text(f"once moved aside: {WORDS}")
            app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
            traces = {who: f"{asked(app.get_tracer('app'), who, words_of(who)):032x}" for who in WHOSE.values()}
            asked(app.get_tracer("app"), "ben", "a cold")
            service.wait_value(12, "tracescore_evaluations_total")
            assert {"spool.damaged"} < {*holding(tmp_path, WORDS)}
            for what, who in WHOSE.items():
                shown = words_of(who).replace("'", "&#39;")
                assert shown in service.get("page", f"/interactions/{traces[who]}")
                value = {"user": who, "conversation": f"session of {who}", "trace": traces[who]}[what]
                page = f"http://{service.addresses['page']}"
                done = run("erase", f"--{what}", value, "-c", str(tmp_path / "tracescore.yaml"), "--page", page)
                assert done.returncode == 0, done.stderr
                assert f"erased: 1 traces of this {what}" in done.stdout
                assert f"judge {judge.url}" in done.stdout
                assert f"files moved aside: {int(what == 'user')}" in done.stdout
                assert holding(tmp_path, words_of(who)) == holding(tmp_path, who) == []
                assert shown not in service.get("page", "/interactions") + service.get("page", "/")
                service.wait_log(f'what=erase_{what} traces="1"')
            assert holding(tmp_path, "a cold")
            assert "a cold" in service.get("page", "/interactions")
            look_into_the_spool(tmp_path, page)
            assert not [line for line in service.log if any(who in line for who in WHOSE.values())]
            evaluated = service.value("tracescore_evaluations_total")
            service.terminate()
        with serving(tmp_path, config) as service:
            assert service.value("tracescore_evaluations_total") == evaluated
            assert "a cold" in service.get("page", "/interactions")
            late = span(77, trace=int(traces["dora"], 16), name="late", attrs={"openinference.span.kind": "CHAIN"})
            post(service, request_of([late]).SerializeToString())
            assert service.value("tracescore_receiver_spans_total") == 1
            assert service.value("tracescore_receiver_admitted_spans_total") == 0
            assert holding(tmp_path, WORDS) == []


def look_into_the_spool(folder: Path, page: str) -> None:
    """While the service runs, and goes on to have it for itself."""
    asked = ("-c", str(folder / "tracescore.yaml"), "--page", page)
    found = json.loads(run("spool", "stats", *asked).stdout)
    assert (found["rows"]["results"], found["results_with_texts"]) == (4, 1)
    copy = folder / "copy" / "spool"
    copy.parent.mkdir()
    assert run("spool", "backup", str(copy), *asked).returncode == 0
    again = run("spool", "backup", str(copy), *asked)
    assert (again.returncode, again.stderr.count("File exists")) == (2, 1)
    assert copy.stat().st_mode & 0o777 == 0o600
    alone = folder / "alone.yaml"
    alone.write_text(f"spool: {{path: '{copy}'}}\n")
    lines = [run("spool", "export", "-c", str(alone)).stdout, run("spool", "export", *asked).stdout]
    assert lines[0] == lines[1]
    rows = [json.loads(line) for line in lines[0].splitlines()]
    assert [row["interaction"]["question"] for row in rows].count(None) == 3
    assert json.loads(run("spool", "stats", "-c", str(alone)).stdout)["rows"] == found["rows"]
    assert sorted(each.name for each in folder.iterdir() if each.name.startswith(".")) == []


def post(service: Running, body: bytes) -> None:
    headers = {"content-type": "application/x-protobuf"}
    request = urllib.request.Request(f"http://{service.addresses['http']}/v1/traces", body, headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.status == 200


def test_without_texts_on_the_disk_a_crash_loses_what_waited_and_says_so(tmp_path: Path) -> None:
    with openai_server() as judge:
        config = yaml.safe_load(settings(tmp_path, judge.url))
        config["spool"]["store"] = "none"
        config["evaluators"] = {"max_concurrency": 1}
        del config["drift"]
        judge.script = lambda request: replace(sensible(request), delay=0.0 if request.is_probe else 60.0)
        with serving(tmp_path, yaml.safe_dump(config)) as service:
            app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
            traces = [asked(app.get_tracer("app"), who, WORDS) for who in ("anna", "carl", "dora")]
            service.wait_value(3, "tracescore_evaluations_pending", measure="faithfulness")
            page = f"http://{service.addresses['page']}"
            receipt = ask(WebConfig(), page, "/api/v1/erase", {"trace": f"{traces[2]:032x}"})
            assert receipt["traces"] == 1
            assert service.value("tracescore_evaluations_total", outcome="shed", reason="erased") == 3
            assert service.value("tracescore_evaluations_pending", measure="faithfulness") == 2
            assert holding(tmp_path, WORDS) == []
            service.process.kill()
            service.process.wait()
        judge.script = sensible
        with serving(tmp_path, yaml.safe_dump(config)) as service:
            assert service.value("tracescore_interactions_total") == 3
            assert service.value("tracescore_evaluations_total", outcome="shed") == 9
            assert service.value("tracescore_evaluations_pending") == 0
            assert len([line for line in service.log if "event=interaction_lost" in line]) == 2
        app.shutdown()


def test_what_waits_for_the_judge_for_longer_than_texts_may_stay_is_dropped_and_counted(tmp_path: Path) -> None:
    config = settings(tmp_path, f"http://127.0.0.1:{free_port()}/v1") + "retain: {spool: 1s}\n"
    with serving(tmp_path, config) as service:
        app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
        for number in range(20):
            asked(app.get_tracer("app"), f"user {number}", f"{WORDS} {number}")
        service.wait_value(60, "tracescore_evaluations_total", outcome="shed", reason="expired")
        assert service.value("tracescore_evaluations_pending") == 0
        assert service.terminate() == 0
    with closing(sqlite3.connect(tmp_path / "spool")) as spool:
        assert spool.execute("SELECT count(*) FROM interactions WHERE fate = 'waiting'").fetchone() == (0,)
