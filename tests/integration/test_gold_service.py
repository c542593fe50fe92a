"""The gold set inside the running service, and what `gold` and `check --probe` say; the judge compares words."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from tests.app_server import Answer, app_server
from tests.openai_server import OpenAIServer, Reply, openai_server, sensible
from tests.rag_service import OTHERS, PRICES, RELEASES, RagService, rag_service, write_gold_set
from tests.running import FREE_PORTS, serving
from tests.servers import free_port, wait
from tracescore.gold.store import Store

SIZE = len(PRICES) + len(OTHERS)


@pytest.fixture
def judge() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


class Place:
    """A folder with a gold set and an address where spans are received."""

    def __init__(self, folder: Path, judge: OpenAIServer) -> None:
        self.folder = folder
        self.receiving = f"127.0.0.1:{free_port()}"
        self.set = write_gold_set(folder / "prices.jsonl")
        self._judge = (
            "judge: {kind: openai, model: m, name: gpt, max_retries: 0, price: {input: 1, output: 1}, "
            f"base_url: '{judge.url}'}}\n"
            f"embedder: {{kind: openai, model: e, base_url: '{judge.url}'}}\n"
        )

    def settings(self, gold: str = "", ports: str = FREE_PORTS) -> str:
        ports = ports.replace('http: {listen: "127.0.0.1:0"}', f'http: {{listen: "{self.receiving}"}}', 1)
        return f"{ports}assembly: {{idle: 200ms, orphan_idle: 400ms}}\n{self._judge}{gold}"

    def gold(self, target: str, **more: str) -> str:
        known = {"set": str(self.set), "store": str(self.folder / "runs"), "service": "shop", "target": target} | more
        return "gold:\n" + "".join(f"  {name}: {value}\n" for name, value in known.items())

    def exporters(self) -> list[OTLPSpanExporter]:
        return [OTLPSpanExporter(endpoint=f"http://{self.receiving}/v1/traces") for _ in RELEASES]

    def run(self, settings: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`tracescore` with these arguments; FILE stands for a file with the settings."""
        file = self.folder / "command.yaml"
        file.write_text(settings)
        typed = [str(file) if each == "FILE" else each for each in arguments]
        return subprocess.run(
            [sys.executable, "-m", "tracescore.cli.main", *typed],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )


@pytest.fixture
def place(tmp_path: Path, judge: OpenAIServer) -> Place:
    return Place(tmp_path, judge)


def http(app: RagService) -> str:
    return f'{{kind: http, url: "{app.url}", answer: answer, contexts: "passages.*.text", release: version}}'


# ---------------------------------------------------------------- what is live and what is not


def test_the_service_takes_its_answers_from_the_traces_and_counts_none_of_them_as_live(place: Place) -> None:
    with rag_service(*place.exporters()) as app:
        target = f'{{kind: trace, url: "{app.url}", wait: 20s}}'
        with serving(place.folder, place.settings(place.gold(target))) as service:
            service.wait_log("event=gold_run_done", 60)
            assert service.value("tracescore_gold_traces_total", use="answer") >= SIZE
            assert service.value("tracescore_gold_items", outcome="scored", service_version="1.0") == SIZE
            app.answer("What is the price of the Fjord sofa?", {})
            service.wait_value(1, "tracescore_interactions_total")
            assert service.value("tracescore_interactions_total") == 1


def test_a_replica_without_a_gold_set_keeps_the_requests_of_others_out(place: Place) -> None:
    with rag_service(*place.exporters()) as app, serving(place.folder, place.settings()) as service:
        done = place.run(place.settings(place.gold(http(app))), "gold", "run", "-c", "FILE")
        assert done.returncode == 0, done.stderr
        service.wait_value(SIZE, "tracescore_gold_traces_total", use="kept_out")
        app.answer("What is the price of the Fjord sofa?", {})
        service.wait_value(1, "tracescore_interactions_total")
        assert service.value("tracescore_interactions_total") == 1
        assert service.value("tracescore_sampling_interactions_total") == 1


def test_a_run_by_hand_shows_in_the_metrics_of_the_service_that_shares_the_store(place: Place) -> None:
    with rag_service(*place.exporters()) as app:
        settings = place.settings(place.gold(http(app), schedule="null"))
        with serving(place.folder, settings) as service:
            assert service.value("tracescore_gold_info") == 1
            done = place.run(settings, "gold", "run", "-c", "FILE", "--release", "by-hand")
            assert done.returncode == 0, done.stderr
            service.wait_value(SIZE, "tracescore_gold_items", outcome="scored", service_version="1.0")
            assert "pinned" in service.get("page", "/gold")


def test_a_run_that_sigterm_cuts_is_finished_by_the_next_process(place: Place, judge: OpenAIServer) -> None:
    judge.script = lambda request: replace(sensible(request), delay=0.0 if request.is_probe else 0.2)
    with rag_service(*place.exporters()) as app:
        settings = place.settings(place.gold(http(app), concurrency="1"))
        with serving(place.folder, settings) as service:
            store = Store(place.folder / "runs")
            wait(lambda: [run for run in store.runs("prices") if store.whole(run).outcomes], "no item is done")
            assert service.terminate() == 0
        (run,) = store.runs("prices", "running")
        before = {each.id: each.trace_id for each in store.whole(run).outcomes}
        assert 0 < len(before) < SIZE
        judge.script = sensible
        with serving(place.folder, settings) as service:
            service.wait_log("event=gold_run_done")
        (run,) = store.runs("prices")
        after = {each.id: each.trace_id for each in store.whole(run).outcomes}
    assert len(after) == SIZE
    assert before.items() <= after.items()


def test_while_the_service_waits_for_its_judge_nothing_is_asked(place: Place, judge: OpenAIServer) -> None:
    judge.script = lambda _: replace(sensible(_), status=503, raw=b"{}")
    with (
        rag_service(*place.exporters()) as app,
        serving(place.folder, place.settings(place.gold(http(app)))) as service,
    ):
        service.wait_log("event=judge_unreachable")
        assert app.requests == 0
        judge.script = sensible
        service.wait_log("event=gold_run_done", 60)


def test_a_judge_that_is_lost_for_a_moment_is_waited_for(place: Place, judge: OpenAIServer) -> None:
    with rag_service(*place.exporters()) as app:
        gold = place.gold(http(app), schedule="null", on_release="true")
        with serving(place.folder, place.settings(gold)) as service:
            service.wait_log("event=judge_ready")
            judge.queue(*[Reply.error(503)] * 3)
            app.answer("What is the price of the Fjord sofa?", {})  # of a release that nobody has seen before
            service.wait_log("event=gold_run_done", 60)
            assert service.value("tracescore_gold_items", outcome="scored") == SIZE


# ---------------------------------------------------------------- what is wrong is one line


def test_the_page_of_the_gold_set_needs_one(place: Place) -> None:
    with serving(place.folder, place.settings()) as service:
        assert "Gold set" not in service.get("page", "/")


@pytest.mark.parametrize("command", ["run", "pin"])
def test_without_a_gold_set_its_commands_say_where_it_is_named(place: Place, command: str) -> None:
    done = place.run(place.settings(), "gold", command, "-c", "FILE")
    assert done.returncode == 2
    assert done.stderr == (
        "tracescore: gold: no gold set in the configuration; name its file and target in the section gold\n"
    )


@pytest.mark.parametrize("command", [("serve", "-c"), ("gold", "run", "-c")], ids=" ".join)
def test_a_set_with_one_broken_line_is_refused_by_every_command_with_that_line(
    place: Place, command: tuple[str, ...]
) -> None:
    lines = place.set.read_text().splitlines()
    lines[4] = '{"question": "What is this?"}'
    place.set.write_text("\n".join(lines))
    done = place.run(place.settings(place.gold("{kind: http, url: 'http://127.0.0.1:9'}")), *command, "FILE")
    assert done.returncode == 2
    assert done.stderr == f"{place.set}:5: reference: required, but not set\n"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "unreachable: "),
        (Answer(b"<html>", content_type="text/html"), "not_json: the app answered HTML (text/html)"),
        (
            Answer({"reply": "x"}),
            "no_answer: gold.target.answer: answer matches nothing in the response: it holds reply",
        ),
        (Answer({"answer": "x"}, delay=1.0), "timeout: no answer within 0.3 s (gold.timeout)"),
    ],
)
def test_check_probe_asks_the_app_once_and_says_what_is_wrong(place: Place, answer: Answer | None, words: str) -> None:
    with app_server() as app:
        app.otherwise = answer or app.otherwise
        url = app.url if answer else f"http://127.0.0.1:{free_port()}"
        late = {"timeout": "300ms"} if answer and answer.delay else {}
        settings = place.settings(place.gold(f'{{kind: http, url: "{url}"}}', **late))
        done = place.run(settings, "check", "--probe", "FILE")
        assert len(app.asked) == bool(answer)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"prices.jsonl: gold.target: {words}" in line
    assert not (place.folder / "runs").exists()  # checking opens nothing


def test_check_probe_says_what_came_and_that_an_empty_answer_is_one(place: Place) -> None:
    with app_server() as app:
        app.otherwise = Answer({"answer": "", "docs": ["A.", "B."]})
        target = f'{{kind: http, url: "{app.url}", contexts: docs}}'
        done = place.run(place.settings(place.gold(target)), "check", "--probe", "FILE")
    assert done.returncode == 0, done.stderr
    assert f"prices.jsonl: {SIZE} items; the app answers, with 2 contexts, but its answer is empty" in done.stdout


def test_check_probe_works_beside_a_service_that_has_the_addresses_of_the_receiver(place: Place) -> None:
    host, _, port = place.receiving.rpartition(":")
    with app_server() as app, socket.create_server((host, int(port))):
        app.otherwise = Answer({"answer": "a", "docs": ["A."]})
        for target, said in (
            (
                f'{{kind: http, url: "{app.url}", contexts: docs}}',
                "the app answers, with 1 context",
            ),
            (f'{{kind: trace, url: "{app.url}"}}', "tracescore did not ask the app: its answers come as traces, "),
        ):
            done = place.run(place.settings(place.gold(target)), "check", "--probe", "FILE")
            assert done.returncode == 0, done.stderr
            assert said in done.stdout


@pytest.mark.parametrize("kind", ["http", "trace"])
@pytest.mark.parametrize("passes_on", [True, False])
def test_check_probe_names_an_app_that_starts_traces_of_its_own(place: Place, kind: str, passes_on: bool) -> None:
    with rag_service(*place.exporters()) as app:
        app.passes_on = passes_on
        target = http(app) if kind == "http" else f'{{kind: trace, url: "{app.url}", wait: 5s}}'
        done = place.run(place.settings(place.gold(target)), "check", "--probe", "FILE")
    if passes_on:
        assert done.returncode == 0, done.stderr
        assert "the app answers, with 2 contexts" in done.stdout
    else:
        assert done.returncode == 2
        assert "prices.jsonl: gold.target: no_trace: " in done.stderr
        assert "the app does not pass the traceparent header on" in done.stderr


def test_beside_a_running_service_an_app_that_starts_traces_of_its_own_is_found_by_its_answers(place: Place) -> None:
    page = f'web: {{listen: "127.0.0.1:{free_port()}"}}'
    ports = FREE_PORTS.replace('web: {listen: "127.0.0.1:0"}', page)
    with rag_service(*place.exporters()) as app, serving(place.folder, place.settings(ports=ports)):
        settings = place.settings(place.gold(http(app)), ports)
        app.passes_on = False
        probed = place.run(settings, "check", "--probe", "FILE")
        done = place.run(settings, "gold", "run", "-c", "FILE")
    assert probed.returncode == 2
    assert "no_trace: the running service counted 1 of 1 answers as live" in probed.stderr
    assert done.returncode == 0, done.stderr
    assert "tracescore gold run: traceparent: the running service counted" in done.stderr


def test_a_target_that_is_down_fails_the_run_and_every_report_says_so(place: Place) -> None:
    target = f'{{kind: http, url: "http://127.0.0.1:{free_port()}"}}'
    reports = [f"--report={place.folder / name}" for name in ("out.md", "out.json", "out.xml")]
    done = place.run(place.settings(place.gold(target, retries="0")), "gold", "run", "-c", "FILE", *reports)
    assert done.returncode == 1
    assert "tracescore gold run: run: 127.0.0.1:" in done.stderr
    assert "is the app up?" in done.stderr
    assert "Gold set prices: failed" in (place.folder / "out.md").read_text()
    assert json.loads((place.folder / "out.json").read_text())["run"]["state"] == "failed"


def test_pinning_needs_a_good_run(place: Place) -> None:
    with rag_service() as app:
        settings = place.settings(place.gold(http(app)))
        first = place.run(settings, "gold", "run", "-c", "FILE", "--compare-with", "PINNED")
        assert (first.returncode, "this run becomes part of the reference" in first.stderr) == (0, True)
        other = place.run(settings, "gold", "pin", "-c", "FILE", "--release", "9")
        pinned = place.run(settings, "gold", "pin", "-c", "FILE")
    assert (other.returncode, other.stderr) == (
        2,
        "tracescore: gold pin: prices has no good run of release 9 yet; make one with tracescore gold run\n",
    )
    assert pinned.stdout == (
        "prices: the reference is release 1.0, 1 run; "
        "three runs make a steadier one: run the set again, then pin again\n"
    )


def test_a_command_that_would_listen_where_the_service_does_says_so(place: Place) -> None:
    with rag_service(*place.exporters()) as app, serving(place.folder, place.settings()):
        target = f'{{kind: trace, url: "{app.url}"}}'
        done = place.run(place.settings(place.gold(target)), "gold", "run", "-c", "FILE")
    assert done.returncode == 2
    assert f"receiver.http.listen: cannot listen on {place.receiving}" in done.stderr
