"""Everything goes wrong, by turns and at random: what was acknowledged has a result, or was reported as damaged.

Looked at from outside alone: what senders were told, /metrics at every scrape, and an OTLP destination. Twenty rounds
by default; TRACESCORE_CHAOS=200 by hand. TRACESCORE_SEED repeats another run.
"""

from __future__ import annotations

import http.client
import os
import random
import resource
import signal
import socket
import sqlite3
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests import otlp
from tests.openai_server import OpenAIServer, Reply, openai_server, sensible
from tests.otlp_sink import Sink, otlp_sink
from tests.running import FREE_PORTS, Running, serving
from tracescore.spool.schema import CHECKSUM

ROUNDS = int(os.environ.get("TRACESCORE_CHAOS", "20"))
SEED = int(os.environ.get("TRACESCORE_SEED", "17"))
MEASURES = ("answer_relevancy", "completeness", "faithfulness")
USUAL, FLOOD = 4, 40
"""Answers that are sent in a round, and in one with ten times the load."""


class Sender:
    """Sends answers, each a trace of its own, until each has been acknowledged; says what it was told otherwise."""

    def __init__(self) -> None:
        self.sent = 0
        self.told = Counter[int]()
        self._unsent: deque[bytes] = deque()

    def add(self, count: int) -> None:
        for _ in range(count):
            self.sent += 1
            self._unsent.append(_answer(self.sent))

    def send(self, address: str, patience: float = 20.0) -> None:
        """Over three connections, until all is acknowledged or nobody has answered for long."""
        until = time.monotonic() + patience
        threads = [threading.Thread(target=self._send, args=(address, until)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @property
    def done(self) -> bool:
        return not self._unsent

    def _send(self, address: str, until: float) -> None:
        while time.monotonic() < until:
            try:
                body = self._unsent.popleft()
            except IndexError:
                return
            status = self._post(address, body)
            self.told[status] += 1
            if status != 200:
                self._unsent.append(body)
                time.sleep(0.1)  # as an exporter does that is told to come back
            if not status:
                return

    @staticmethod
    def _post(address: str, body: bytes) -> int:
        connection = http.client.HTTPConnection(address, timeout=10)
        try:
            connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


def _answer(number: int) -> bytes:
    now = time.time_ns()
    times = {"start_time_unix_nano": now, "end_time_unix_nano": now + 1000}
    handbook = f"On the sign-in page choose option {number % 7} and follow the link in the e-mail."
    texts = {"input.value": "How do I reset it?", "output.value": f"Choose option {number % 7} and follow the link."}
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": handbook}
    root = otlp.span(2 * number, 0, number, {"openinference.span.kind": "CHAIN", **texts}, name="rag", **times)
    below = otlp.span(2 * number + 1, 2 * number, number, found, name="retrieve", **times)
    return otlp.traces([root, below]).SerializeToString()


class Ledger:
    """Scrapes all the time: at every scrape, of each measure, started = ended + pending."""

    def __init__(self) -> None:
        self.scrapes, self.wrong, self.damaged = 0, list[str](), 0.0

    @contextmanager
    def over(self, service: Running) -> Iterator[None]:
        over, damaged = threading.Event(), [0.0]
        thread = threading.Thread(target=self._watch, args=(service, over, damaged))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.damaged += damaged[0]

    def _watch(self, service: Running, over: threading.Event, damaged: list[float]) -> None:
        while not over.is_set() and service.process.poll() is None:
            try:
                samples = service.samples()
            except (OSError, http.client.HTTPException, ValueError):
                over.wait(0.05)
                continue
            self.scrapes += 1
            damaged[0] = sum(v for (name, _), v in samples.items() if name == "tracescore_spool_damaged_rows_total")
            for measure in MEASURES:
                started, pending, ended = (
                    sum(
                        value
                        for (name, labels), value in samples.items()
                        if name == f"tracescore_evaluations_{which}" and ("measure", measure) in labels
                    )
                    for which in ("started_total", "pending", "total")
                )
                if started != ended + pending:
                    self.wrong.append(f"{measure}: {started} started, {ended} ended, {pending} pending")
            over.wait(0.05)


class Chaos:
    """One spool, one process after another over it, and what happens to them."""

    def __init__(self, folder: Path, judge: OpenAIServer, sink: Sink) -> None:
        self.folder, self.judge, self.sink = folder, judge, sink
        self.random, self.sender, self.ledger = random.Random(SEED), Sender(), Ledger()
        self.clock = folder / "ahead"
        self.clock.write_bytes(struct.pack("d", 0.0))
        self._stack = ExitStack()
        self._calm: list[Callable[[], None]] = []

    def start(self) -> None:
        config = (
            f"{FREE_PORTS}assembly: {{idle: 100ms, orphan_idle: 1s}}\nspool: {{path: {self.folder}/spool}}\n"
            f"{self.judge.settings}".replace("max_retries: 0}", "max_retries: 0, timeout: 1s}", 1)
        )
        module = ("tests.shaken", str(self.clock))
        serving_it = serving(self.folder, config, "--otlp-out", self.sink.http, module=module)
        self.service = self._stack.enter_context(serving_it)
        self._stack.enter_context(self.ledger.over(self.service))

    def stop(self, how: signal.Signals) -> None:
        self.service.process.send_signal(how)
        self.service.process.wait(60)
        self._stack.close()
        assert not [line for line in self.service.log if "Traceback" in line or "event=defect" in line]

    def round(self, what: Callable[[Chaos], None]) -> None:
        self.sender.add(USUAL)
        what(self)
        self.sender.send(self.service.addresses["http"])
        for calm in self._calm:
            calm()
        self._calm.clear()
        self.sender.send(self.service.addresses["http"])
        assert self.sender.done, (what.__name__, self.sender.told, self.service.log[-10:])

    def afterwards(self, calm: Callable[[], None]) -> None:
        self._calm.append(calm)

    def close(self) -> None:
        self._stack.close()


# ---------------------------------------------------------------- what happens


def killed(chaos: Chaos) -> None:
    sending = threading.Thread(target=chaos.sender.send, args=(chaos.service.addresses["http"], 5.0))
    sending.start()
    time.sleep(chaos.random.uniform(0, 0.3))
    chaos.stop(signal.SIGKILL)
    sending.join()
    chaos.start()


def ended_and_damaged(chaos: Chaos) -> None:
    """Two rows of the file get a wrong checksum."""
    chaos.stop(signal.SIGTERM)
    with sqlite3.connect(chaos.folder / "spool") as db:
        db.create_function(CHECKSUM, -1, lambda *_: 1, deterministic=True)
        for _ in range(2):
            table = chaos.random.choice(("pieces", "results", "origins"))
            rows = [row for (row,) in db.execute(f"SELECT rowid FROM {table} WHERE checksum != 1")]
            if rows:
                column = {"pieces": "at", "results": "at", "origins": "scope"}[table]
                row = chaos.random.choice(rows)
                db.execute(f"UPDATE {table} SET {column} = {column} WHERE rowid = ?", (row,))
    db.close()
    chaos.start()


def full_disk(chaos: Chaos) -> None:
    process, unlimited = chaos.service.process.pid, resource.RLIM_INFINITY
    resource.prlimit(process, resource.RLIMIT_FSIZE, (2**15, unlimited))
    chaos.sender.send(chaos.service.addresses["http"], 0.7)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (unlimited, unlimited))


def frozen(chaos: Chaos) -> None:
    chaos.service.process.send_signal(signal.SIGSTOP)
    time.sleep(chaos.random.uniform(0.1, 0.5))
    chaos.service.process.send_signal(signal.SIGCONT)


def clock_jump(chaos: Chaos) -> None:
    def ahead(seconds: float) -> None:
        with chaos.clock.open("r+b") as file:
            file.write(struct.pack("d", seconds))

    ahead(chaos.random.choice((-7200.0, -60.0, 60.0, 7200.0)))
    chaos.afterwards(lambda: ahead(0.0))


def judge_says(reply: Reply) -> Callable[[Chaos], None]:
    def what(chaos: Chaos) -> None:
        chaos.judge.script = lambda request: sensible(request) if request.is_probe else reply
        chaos.afterwards(lambda: setattr(chaos.judge, "script", sensible))

    return what


def sink_down(chaos: Chaos) -> None:
    for which in ("traces", "logs"):
        chaos.sink.script(which, times=2, status=503, retry_after=1)


def flood(chaos: Chaos) -> None:
    chaos.sender.add(FLOOD - USUAL)


def silent_connections(chaos: Chaos) -> None:
    for name in ("http", "grpc", "metrics") * 20:
        host, _, port = chaos.service.addresses[name].rpartition(":")
        connection = socket.create_connection((host, int(port)), 5)
        with suppress(OSError):
            connection.send(b"POST /v1/traces HTTP/1.1\r\n")
        chaos.afterwards(connection.close)


HAPPENS: dict[str, Callable[[Chaos], None]] = {
    "killed": killed,
    "damaged rows": ended_and_damaged,
    "a full disk": full_disk,
    "frozen": frozen,
    "the clock jumps": clock_jump,
    "the judge says 429": judge_says(Reply.error(429, "rate_limit_exceeded")),
    "the judge hangs": judge_says(Reply(delay=3.0)),
    "the judge talks garbage": judge_says(Reply(content="}{ no")),
    "the destination is down": sink_down,
    "ten times the load": flood,
    "silent connections": silent_connections,
}


@pytest.mark.timeout(120 + 20 * ROUNDS)
def test_what_was_acknowledged_has_a_result_or_was_reported_as_damaged(tmp_path: Path) -> None:
    with openai_server() as judge, otlp_sink() as sink:
        chaos = Chaos(tmp_path, judge, sink)
        try:
            chaos.start()
            rounds = [name for _ in range(-(-ROUNDS // len(HAPPENS))) for name in HAPPENS]
            chaos.random.shuffle(rounds)
            for name in rounds[:ROUNDS]:
                chaos.round(HAPPENS[name])
            everything_is_accounted_for(chaos)
        finally:
            chaos.close()


def everything_is_accounted_for(chaos: Chaos) -> None:
    service, sent = chaos.service, chaos.sender.sent
    until = time.monotonic() + 60
    while service.value("tracescore_evaluations_pending") or service.value("tracescore_assembly_open_traces"):
        assert time.monotonic() < until, service.log[-20:]
        time.sleep(0.1)
    read = service.value("tracescore_interactions_total")
    ended = service.value("tracescore_evaluations_total")
    chaos.stop(signal.SIGTERM)
    print(  # noqa: T201 - for a run by hand
        f"\n{ROUNDS} rounds, seed {SEED}: {sent} acknowledged, {read:.0f} counted, {chaos.ledger.damaged:.0f} damaged"
    )
    assert sent - chaos.ledger.damaged <= read <= sent, "lost, or doubled"
    assert ended == 3 * read
    assert not chaos.ledger.wrong, chaos.ledger.wrong[:5]
    assert chaos.ledger.scrapes > ROUNDS
    assert set(chaos.sender.told) <= {200, 503, 0}, chaos.sender.told
    scored = {(log["trace_id"], log["attributes"]["gen_ai.evaluation.name"], log["attributes"]["tracescore.score_id"])
              for log in chaos.sink.received().logs}  # fmt: skip
    assert len(scored) == len({each[:2] for each in scored}), "a repeat has another id"
