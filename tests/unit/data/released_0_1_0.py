"""Made `released-0.1.0.zip` and `released-0.1.0.json`: what a process of version 0.1.0 left when it was killed.

    cd CHECKOUT_OF_0.1.0 && PYTHONPATH=. python .../tests/unit/data/released_0_1_0.py

It runs with the code of that version alone (commit ce0695d) and is kept to say how the files came to be. The real
service receives spans by OTLP, a scripted judge answers, days pass by a clock of the script's own; then the files are
copied under the running process, as a kill would leave them. The zip holds the spool, the files of labels and of gold
runs, the gold set and the anchors; the JSON holds the configuration, the moment, and what the process showed then.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import yaml
from anyio import to_thread
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tests.app_server import Answer, app_server
from tests.openai_server import OpenAIServer, by, openai_server
from tests.otlp import attributes, span
from tests.otlp_sink import Sink, otlp_sink
from tests.results import SettableClock
from tests.sample_app import GOOD, HALF, OFF_TOPIC, Asked
from tracescore.config import Config
from tracescore.service import Service

CONFIG = """
receiver: {grpc: {listen: "127.0.0.1:0"}, http: {listen: "127.0.0.1:0"}}
web: {listen: "127.0.0.1:0", keep: 10}
exporters:
  prometheus: {listen: "127.0.0.1:0"}
  otlp: {endpoint: "SINK", protocol: http}
  forward: {http: "RELAY", attach: hold, deadline: 1h}
assembly: {idle: 1s, orphan_idle: 4m}
spool: {path: "FOLDER/spool"}
sampling:
  rules: [{name: tenants, route: "/tenant", ratio: 0.8}]
judge: {kind: openai, model: m, base_url: "JUDGE", max_retries: 0}
embedder: {kind: openai, model: e, base_url: "JUDGE"}
drift:
  min_count: 3
  baseline: {scores: 200, days: 1}
  anchors: "FOLDER/anchors.jsonl"
  labels: {path: "FOLDER/labels", ratio: 0.03}
gold: {set: "FOLDER/gold.jsonl", store: "FOLDER/gold", service: shop, target: {kind: http, url: "APP", answer: answer}}
"""
DAY = 86_400.0
EVASIVE = Asked("Which colours are there?", "I don't know.", ("There are red and blue ones.",))
CAST = (GOOD, HALF, GOOD, OFF_TOPIC, GOOD, EVASIVE, HALF, GOOD)
GOLD = [{"id": f"g{n}", "question": f"How long is return window {n}?", "reference": "30 days."} for n in range(4)]
LASTING = re.compile(
    r"tracescore_(interactions_total|target_ratio|assembly_(waiting_spans|(open|remembered)_traces)"
    r"|exporters_(series|folded_scores_total|otlp_waiting|forward_held_spans)"
    r"|(evaluations|answer_relevancy|completeness|faithfulness|drift|gold)_\w+(?<!_created))"
)
"""Metrics that go on after a restart."""
FILES = ("spool", "labels", "gold", "gold.jsonl", "anchors.jsonl")


@dataclass
class Rig:
    """The service while it runs."""

    service: Service
    clock: SettableClock
    url: str
    asked: int = 0

    def answer(self, asked: Asked, release: str, *, conversation: str = "", ends: bool = True) -> None:
        """One trace whose answer ends now."""
        self.asked += 1
        now = int(self.clock.now * 1e9)
        times = {"start_time_unix_nano": now - 10**9, "end_time_unix_nano": now}
        base, trace = 10 * self.asked, self.asked
        route = {"http.route": "/tenant" if self.asked % 6 == 0 else "/ask"}
        rag: dict[str, Any] = {"openinference.span.kind": "CHAIN", "input.value": asked.question}
        rag |= {"output.value": asked.answer, **({"session.id": conversation} if conversation else {})}
        found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": asked.contexts[0]}
        spans = [
            span(base + 2, base + 1, trace, rag, name="rag", **times),
            span(base + 3, base + 2, trace, found, name="retrieve", **times),
        ]
        if ends:
            spans.append(span(base + 1, 0, trace, route, name="POST", kind=Span.SPAN_KIND_SERVER, **times))
        named = {"service.name": "shop", "service.version": release, "deployment.environment.name": "test"}
        scoped = ScopeSpans(scope=InstrumentationScope(name="scope"), spans=spans)
        of = ResourceSpans(resource=Resource(attributes=attributes(named)), scope_spans=[scoped])
        body = ExportTraceServiceRequest(resource_spans=[of]).SerializeToString()
        headers = {"Content-Type": "application/x-protobuf"}
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/v1/traces", body, headers), timeout=10).close()

    async def answers(self, count: int, release: str, every: float, **fields: Any) -> None:
        """So many, `every` so many seconds."""
        for _ in range(count):
            self.clock.now += every
            await to_thread.run_sync(lambda: self.answer(CAST[self.asked % len(CAST)], release, **fields))

    async def settle(self) -> None:
        """All that came is scored and in all figures."""
        self.clock.now += 2
        ledger = self.service.ledger
        await until(lambda: sum(ledger.snapshot().interactions.values()) == self.asked)
        await until(lambda: not any(each.pending for each in ledger.evaluations().values()))

    async def totals(self) -> None:
        """Everything is in the totals of the spool."""
        self.clock.now += 11
        await anyio.sleep(0.5)


async def until(condition: Callable[[], Any]) -> None:
    while not condition():  # noqa: ASYNC110 - of parts that know nothing of being watched
        await anyio.sleep(0.02)


async def lead(rig: Rig, judge: OpenAIServer, sink: Sink) -> None:
    """What happens to the service."""
    anchors, labelling = rig.service.drift.anchors, rig.service.labelling
    await until(lambda: rig.service.scorer.judge.ready)
    judge.script = by("another")
    await rig.answers(8, "1.0", 60)
    await rig.settle()  # epoch 1 has begun
    await until(lambda: len(anchors._before) == 3)
    for _ in range(16):
        await rig.answers(20, "1.0", 275)
        await rig.settle()
    await rig.answers(24, "1.1", 40)
    await rig.settle()  # the baseline is learned
    await rig.answers(3, "1.1", 20, conversation="c-1")
    await rig.settle()
    await until(lambda: anchors._last and rig.service.gold.runner.findings.latest)
    for number in range(2):
        asked = await labelling.next()
        said = {m: of["answers"][:1] * max(1, len(of["items"])) for m, of in asked["asked"].items()}
        assert await labelling.give(asked["id"], said if number else {})
    await rig.totals()
    for signal in ("traces", "logs"):
        await to_thread.run_sync(lambda signal=signal: sink.script(signal, times=10_000, status=503))
    await rig.answers(2, "1.1", 1)
    await rig.settle()  # in the results alone, after the totals, and owed to the exporter
    judge.script = lambda request: replace(by("another")(request), delay=600)
    await rig.answers(2, "1.1", 1)
    rig.clock.now += 2
    await until(lambda: rig.service.ledger.evaluations()["faithfulness"].pending == 2)
    await rig.answers(1, "1.1", 1, ends=False)
    await anyio.sleep(1)


def shown(service: Service) -> dict[str, Any]:
    """What the process shows of all that is to outlive it."""
    samples = [sample for family in service.registry.collect() for sample in family.samples]
    rows = [[s.name, s.labels, s.value] for s in samples if s.value and LASTING.fullmatch(s.name)]
    return {"baseline": service.drift.show(), "labels": service.labelling.lines(), "samples": rows}


def waits(folder: Path) -> dict[str, Any]:
    """What the file says of work that waits."""
    with closing(sqlite3.connect(folder / "spool")) as db:
        ask = db.execute
        (epoch,) = ask("SELECT value FROM facts WHERE name LIKE 'judge epoch of %'").fetchone()
        return {
            "waiting": sorted(t.hex() for (t,) in ask("SELECT trace_id FROM interactions WHERE fate = 'waiting'")),
            "owed": sorted([name, key] for name, key in ask("SELECT exporter, key FROM owed")),
            "withheld": sorted([t.hex(), s.hex()] for t, s in ask("SELECT trace_id, span_id FROM withheld")),
            "epoch": json.loads(epoch),
        }


def keep(living: Path, folder: Path) -> None:
    """The files as a kill would leave them now, each made whole in one."""
    for name in FILES:
        for suffix in ("", "-wal"):
            if (file := living / f"{name}{suffix}").exists():
                (folder / file.name).write_bytes(file.read_bytes())
    for name in ("spool", "labels", "gold"):
        with closing(sqlite3.connect(folder / name)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("VACUUM")


async def main(out: Path, living: Path, kept: Path, judge: OpenAIServer, sink: Sink, relay: Sink, app: str) -> None:
    places = {"FOLDER": str(living), "JUDGE": judge.url, "SINK": sink.http, "RELAY": relay.http, "APP": app}
    text = CONFIG
    for name, place in places.items():
        text = text.replace(name, place)
    clock = SettableClock()
    clock.now -= clock.now % DAY
    service, stop = Service(Config.model_validate(yaml.safe_load(text)), clock), anyio.Event()
    async with anyio.create_task_group() as tasks:
        addresses = await tasks.start(service.run, stop)
        await lead(Rig(service, clock, f"http://{addresses['http']}"), judge, sink)
        found = {"config": CONFIG, "now": clock.now, **shown(service)}
        keep(living, kept)
        found |= waits(kept)
        tasks.cancel_scope.cancel()
    rows = ",\n".join(f"  {json.dumps(row)}" for row in found.pop("samples"))
    text = json.dumps(found, indent=1).removesuffix("\n}")
    (out / "released-0.1.0.json").write_text(f'{text},\n "samples": [\n{rows}\n ]\n}}\n')
    with zipfile.ZipFile(out / "released-0.1.0.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in FILES:
            archive.write(kept / name, name)


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        openai_server() as judge,
        otlp_sink() as sink,
        otlp_sink() as relay,
        app_server() as app,
    ):
        app.otherwise = Answer({"answer": "30 days."})
        Path(first, "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in GOLD))
        rows = [
            {"question": a.question, "answer": a.answer, "contexts": list(a.contexts)} for a in (GOOD, HALF, OFF_TOPIC)
        ]
        Path(first, "anchors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        arguments = Path(__file__).parent, Path(first), Path(second), judge, sink, relay, app.url
        anyio.run(main, *arguments)
