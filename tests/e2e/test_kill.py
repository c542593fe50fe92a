"""Killed with SIGKILL at every point where it could matter, again and again, over one spool.

Looked at from outside alone: what was acknowledged to the sender, /metrics, and an OTLP destination. By default the
points that matter most are met once; TRACESCORE_KILLS=20 meets all of them, 20 times each, and takes half an hour.
"""

from __future__ import annotations

import http.client
import os
import random
import re
import subprocess
import threading
import time
import urllib.error
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import otlp
from tests.killed import POINTS
from tests.openai_server import OpenAIServer, openai_server
from tests.otlp_sink import Sink, otlp_sink
from tests.running import FREE_PORTS, Running, serving

KILLS = int(os.environ.get("TRACESCORE_KILLS", "0"))
QUICK = (
    "a request was read",
    "before the commit of a request",
    "after the commit of a request",
    "after the commit of a reading",
    "between two exporters",
    "after the commit of a result",
)
HELD = "after spans were passed on"
"""A point that is met only where spans are kept back."""
OPEN = 60
"""Traces that have been begun and wait for their root at any time."""
ROUND = 12
"""Traces begun, and traces completed, in the life of one process."""
MEASURES = ("answer_relevancy", "completeness", "faithfulness")
COUNTERS = re.compile(
    r"tracescore_(interactions_total|evaluations_(started_)?total|evaluations_lag_seconds_(bucket|count|sum)"
    r"|\w+_(weight|weighted_score|weight_squared\w*|below_target_weight)_total|\w+_score_(bucket|count|sum))"
)
"""What must never go back, whatever dies."""

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class App:
    """Sends traces, each in two requests and some of it twice, until every request has been acknowledged."""

    def __init__(self) -> None:
        self.unsent: deque[bytes] = deque()
        self.begun: list[int] = []
        self.completed: list[int] = []
        self._random = random.Random(1)

    def begin(self, count: int) -> None:
        for _ in range(count):
            number = len(self.begun) + len(self.completed) + 1
            self.begun.append(number)
            self._put(number, first=True)

    def complete(self, count: int) -> None:
        for number in self.begun[:count]:
            self._put(number, first=False)
        self.completed += self.begun[:count]
        del self.begun[:count]

    def send(self, address: str) -> None:
        """Sends what is unsent over some connections at once, until all is acknowledged or nobody answers."""
        senders = [threading.Thread(target=self._send, args=(address,)) for _ in range(3)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()

    def _put(self, number: int, *, first: bool) -> None:
        body = otlp.traces(_spans(number, first=first)).SerializeToString()
        self.unsent.append(body)
        if self._random.random() < 0.2:
            self.unsent.append(body)  # a client that never heard the answer sends it again
        if not first and self.completed and self._random.random() < 0.2:
            again = self._random.choice(self.completed[-100:])
            self.unsent.append(otlp.traces(_spans(again, first=True)).SerializeToString())

    def _send(self, address: str) -> None:
        connection = http.client.HTTPConnection(address, timeout=10)
        try:
            while self.unsent:
                body = self.unsent.popleft()
                try:
                    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
                    acknowledged = connection.getresponse()
                    acknowledged.read()
                    assert acknowledged.status == 200, acknowledged.status
                except BaseException:
                    self.unsent.appendleft(body)
                    raise
        except (OSError, http.client.HTTPException, IndexError):
            pass
        finally:
            connection.close()


def _spans(number: int, *, first: bool) -> list[otlp.Span]:
    """The parts of one answer: the retriever and the RAG span above it, or the plain root of the trace."""
    now = time.time_ns()
    times = _times.setdefault(number, {"start_time_unix_nano": now, "end_time_unix_nano": now + 1000})
    if not first:
        return [otlp.span(3 * number, 0, number, {"http.route": "/ask"}, name="POST /ask", kind=2, **times)]
    texts = {"input.value": "How do I reset it?", "output.value": f"Choose option {number % 7} and follow the link."}
    handbook = f"On the sign-in page choose option {number % 7} and follow the link in the e-mail."
    passages = {"retrieval.documents.0.document.content": handbook}
    rag = {"openinference.span.kind": "CHAIN", **texts}
    found = {"openinference.span.kind": "RETRIEVER", "input.value": "reset", **passages}
    return [
        otlp.span(3 * number + 1, 3 * number, number, rag, name="rag", **times),
        otlp.span(3 * number + 2, 3 * number + 1, number, found, name="retrieve", **times),
    ]


_times: dict[int, dict[str, int]] = {}


class Watch:
    """Scrapes all the time. Every counter only ever grows, also from one process to the next."""

    def __init__(self) -> None:
        self.seen: Samples = {}
        self.scrapes = 0
        self.wrong: list[str] = []

    def over(self, service: Running) -> threading.Thread:
        thread = threading.Thread(target=self._watch, args=(service,))
        thread.start()
        return thread

    def _watch(self, service: Running) -> None:
        while service.process.poll() is None:
            time.sleep(0.05)
            try:
                samples = service.samples()
            except (OSError, http.client.HTTPException, urllib.error.URLError, ValueError):
                continue
            self.scrapes += 1
            self._check(samples)

    def _check(self, samples: Samples) -> None:
        for key, value in samples.items():
            if COUNTERS.fullmatch(key[0]):
                if value < self.seen.get(key, 0.0) - 1e-9:
                    self.wrong.append(f"{key} went from {self.seen[key]} to {value}")
                self.seen[key] = value
        for measure in MEASURES:
            started, pending = (_sum(samples, f"evaluations_{name}", measure) for name in ("started_total", "pending"))
            ended = _sum(samples, "evaluations_total", measure)
            if started != ended + pending:
                self.wrong.append(f"{measure}: {started} started, {ended} ended, {pending} pending")


def _sum(samples: Samples, name: str, measure: str) -> float:
    wanted = ("measure", measure)
    return sum(v for (found, labels), v in samples.items() if found == f"tracescore_{name}" and wanted in labels)


@pytest.fixture(scope="module")
def judge() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture(scope="module")
def sink() -> Iterator[Sink]:
    with otlp_sink() as running:
        yield running


def settings(judge: OpenAIServer, tmp_path: Path) -> str:
    return (
        f"{FREE_PORTS}assembly: {{idle: 100ms, orphan_idle: 2h, max_wait: 2h}}\n"
        f"spool: {{path: {tmp_path}/spool}}\n"
        f"{judge.settings}"
    )


@pytest.mark.timeout(300 + 300 * KILLS)
def test_nothing_acknowledged_is_lost_and_nothing_counts_twice(tmp_path: Path, judge: OpenAIServer, sink: Sink) -> None:
    app, watch, chance = App(), Watch(), random.Random(2)
    config = settings(judge, tmp_path)
    app.begin(OPEN)
    with serving(tmp_path, config, "--otlp-out", sink.http) as service:
        app.send(service.addresses["http"])
    assert not app.unsent
    rounds = [point for point in POINTS if point != HELD] * KILLS or list(QUICK)
    chance.shuffle(rounds)
    for point in rounds:
        app.begin(ROUND)
        app.complete(ROUND)
        times = str(chance.randint(1, 2) if "totals" in point or "reading" in point else chance.randint(1, 6))
        with serving(
            tmp_path, config, "--otlp-out", sink.http, module=("tests.killed", point, times), ready=False
        ) as service:
            service.wait_settled()
            if service.addresses:
                watching = watch.over(service)
                while not has_died(service):  # until it has come to the point often enough
                    app.send(service.addresses["http"])
                    app.begin(2)
                    app.complete(2)
                watching.join()
            assert service.process.wait(30) == -9, (point, times, service.log)
            opened = next((line for line in service.log if "event=spool_open" in line), "open_traces=999")
            assert int(re.search(r"open_traces=(\d+)", opened)[1]) >= 50, opened
    with serving(tmp_path, config, "--otlp-out", sink.http) as service:
        watching = watch.over(service)
        app.complete(len(app.begun))
        app.send(service.addresses["http"])
        assert not app.unsent
        total = len(app.completed)
        service.wait_value(3 * total, "tracescore_evaluations_total", outcome="scored")
        received = sink.wait(spans=total, logs=3 * total)
        assert service.terminate() == 0
        watching.join()
        service.join()
    assert not watch.wrong, watch.wrong[:5]
    assert watch.scrapes
    everything(watch.seen, total)

    spans = {(span["trace_id"], span["span_id"]): span for span in received.spans}
    assert {trace for trace, _ in spans} == {f"{number:032x}" for number in app.completed}
    assert len(spans) == total, "a repeat has another id"
    assert all(spans[span["trace_id"], span["span_id"]] == span for span in received.spans), "a repeat says otherwise"
    events = {log["attributes"]["tracescore.score_id"]: log for log in received.logs}
    assert len(events) == 3 * total, "a repeat has another id"
    assert all(events[log["attributes"]["tracescore.score_id"]] == log for log in received.logs)


@pytest.mark.timeout(300 + 300 * KILLS)
def test_spans_that_were_kept_back_all_arrive_whenever_the_process_dies(
    tmp_path: Path, judge: OpenAIServer, sink: Sink
) -> None:
    sink.clear()
    app, chance = App(), random.Random(3)
    forward = f"forward: {{http: '{sink.http}', attach: hold}}"
    config = settings(judge, tmp_path).replace("{prometheus: ", f"{{{forward}, prometheus: ")
    for point in ("after the commit of a request", "after the commit of a result", HELD, HELD) * max(1, KILLS):
        app.begin(ROUND)
        app.complete(ROUND)
        times = str(chance.randint(1, 6))
        with serving(tmp_path, config, module=("tests.killed", point, times), ready=False) as service:
            service.wait_settled()
            while service.addresses and not has_died(service):
                app.send(service.addresses["http"])
                app.begin(2)
                app.complete(2)
    with serving(tmp_path, config) as service:
        app.complete(len(app.begun))
        app.send(service.addresses["http"])
        assert not app.unsent
        total = len(app.completed)
        service.wait_value(total, "tracescore_evaluations_total", outcome="scored", measure="faithfulness")
        assert service.terminate() == 0
    arrived: dict[str, list[dict[str, Any]]] = {}
    for span in sink.wait(spans=4 * total).spans:
        arrived.setdefault(span["span_id"], []).append(span)
    for number in app.completed:
        plain, rag, found = (arrived.pop(f"{3 * number + part:016x}") for part in range(3))
        assert all(each["attributes"] == {"http.route": "/ask"} for each in plain if not scored(each))
        assert all(each["attributes"]["input.value"] == "reset" for each in found)
        assert any(scored(each) for each in rag)
    assert all(spans[0]["name"] == "evaluate" for spans in arrived.values())
    assert len(arrived) == total


def scored(span: dict[str, Any]) -> bool:
    return "tracescore.faithfulness" in span["attributes"]


def has_died(service: Running) -> bool:
    try:
        service.process.wait(0.5)
    except subprocess.TimeoutExpired:
        return False
    return True


def everything(seen: Samples, total: int) -> None:
    """Every count is exactly what was sent."""

    def value(name: str, **labels: str) -> float:
        wanted = set(labels.items())
        return sum(v for (found, had), v in seen.items() if found == f"tracescore_{name}" and wanted <= set(had))

    assert value("interactions_total") == value("interactions_total", state="complete") == total
    assert value("evaluations_lag_seconds_count") == total
    for measure in MEASURES:
        assert value("evaluations_started_total", measure=measure) == total
        assert value("evaluations_total", measure=measure, outcome="scored") == total
        assert value(f"{measure}_weight_total") == value(f"{measure}_score_count") == total
