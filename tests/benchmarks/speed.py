"""What tracescore costs, beside what it is compared with, in one table: `python -m tests.benchmarks.speed`.

Ratios only: both sides of each row are measured in turn in one run, by the CPU time of their processes, so that a busy
machine slows both. It takes about five minutes; on a quiet machine the last digit stands still. `--short` is a look.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest

from tests.benchmarks import embedded_speed, end_to_end, idle, scrape
from tests.benchmarks.receiver import _plain_value, build
from tests.results import SettableClock
from tracescore.assembly import Assembly, assemble
from tracescore.config import AssemblyConfig, InteractionsConfig
from tracescore.exporters.prometheus.exposition import render
from tracescore.interactions import MARKERS
from tracescore.model import RawSpan, RawTrace
from tracescore.otlp.split import split_traces
from tracescore.pipeline.trace_reader import TraceReader


class Row(NamedTuple):
    """One line of the table: what, in which unit, ours, theirs and what that is; the aim for theirs / ours."""

    what: str
    unit: str
    ours: float
    theirs: float
    other: str
    aim: str = ""

    def markdown(self) -> str:
        """As it stands in the docs."""
        return f"| {self.what} | {self.theirs / self.ours:.1f} | {self.aim} | {self.other} |"


def _idle(seconds: float) -> Iterator[Row]:
    found = idle.measure(seconds)
    for case in idle.AIMS:
        yield Row(f"idle, {case}", "% of a core", found[case], found["bare uvicorn"], "one bare uvicorn")


def _end_to_end(rounds: int, requests: int) -> Iterator[Row]:
    found = end_to_end.measure(rounds, requests)
    others = {"plain": "a server that parses and keeps dicts", "collector": "rotel, which forwards"}
    for (shape, protocol, name), theirs in found.items():
        if name in others:
            for ours in ("service", "with a spool", "and scoring")[: 3 if shape == "rag" else 2]:
                aim = end_to_end.AIMS.get((shape, protocol, name)) if ours == "service" else None
                what = f"{shape} spans over {protocol}" + ("" if ours == "service" else f", {ours}")
                spent = found[shape, protocol, ours]
                yield Row(what, "ms / 1,000 spans", spent, theirs, others[name], f"{aim}" if aim else "")


def _scrape(rounds: int) -> Row:
    async def measured() -> tuple[float, float]:
        registry = await scrape.filled(10_000)
        spent: list[list[float]] = [[], []]
        for _ in range(rounds):
            begun = time.process_time()
            await render(registry, scrape.OPENMETRICS)
            between = time.process_time()
            generate_latest(registry)
            for own, since, until in ((0, begun, between), (1, between, time.process_time())):
                spent[own].append(1e3 * (until - since))
        return min(spent[0]), min(spent[1])

    ours, theirs = asyncio.run(measured())
    return Row("a scrape of 10,000 series", "ms", ours, theirs, "prometheus-client", "2")


def _plainly(body: bytes) -> None:
    """What any reader does at least: every span parsed, with a dict of its attributes."""
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scoped in group.scope_spans:
            for span in scoped.spans:
                {pair.key: _plain_value(pair) for pair in span.attributes}


def _fastest(work: Callable[[], object], rounds: int) -> float:
    """The least CPU seconds that it took."""
    spent = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def _traces(body: bytes) -> list[RawTrace]:
    spans: dict[bytes, list[RawSpan]] = defaultdict(list)
    for span in split_traces(body, lambda _: True).spans:
        spans[span.trace_id].append(span)
    return [assemble(of, []) for of in spans.values()]


def _reading(rounds: int) -> Row:
    body, reader = build("rag", 1).next(), TraceReader(InteractionsConfig())
    traces = _traces(body)
    ours = _fastest(lambda: [reader.read(raw) for raw in traces], rounds)
    theirs = _fastest(lambda: _plainly(body), rounds)
    each = 1e6 / len(traces)
    return Row("reading a RAG trace", "µs", ours * each, theirs * each, "parsing it to dicts")


def _assembling(rounds: int) -> Row:
    """Traces of one span: put together, handed out, forgotten."""
    load, clock = build("ordinary", 1), SettableClock()
    assembly = Assembly(AssemblyConfig(), MARKERS, CollectorRegistry(), clock)
    count = 500
    bodies = [load.next() for _ in range(rounds)]
    (example,) = split_traces(bodies[0], lambda _: True).spans[:1]

    def one(number: int) -> RawSpan:
        return example._replace(trace_id=number.to_bytes(16, "big"))

    spent = []
    for turn in range(rounds):
        spans = [one(turn * count + number + 1) for number in range(count)]
        begun = time.process_time()
        assembly.take(spans, [])
        for waited in (6, 60):
            clock.now += waited
            assembly.due()
        assembly.take_gone()
        spent.append((time.process_time() - begun) / count)
    theirs = _fastest(lambda: _plainly(bodies[0]), rounds) / load.spans
    return Row("assembling a trace of one span", "µs", 1e6 * min(spent), 1e6 * theirs, "parsing that span to a dict")


def _model() -> Row:
    bare, asked = embedded_speed.measure()
    return Row("32 texts embedded for 32 interactions", "texts / CPU s", 1 / asked, 1 / bare, "the bare model", "0.8")


def rows(*, short: bool) -> Iterator[Row]:
    """All of them, each as soon as it is measured."""
    yield from _idle(10 if short else 30)
    yield from _end_to_end(1 if short else 5, 60 if short else 200)
    yield _reading(20)
    yield _assembling(100)
    yield _scrape(3 if short else 10)
    yield _model()


def main(*, short: bool) -> None:
    """Prints the table, and beside it the figures that its ratios come from."""
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores\n")
    print("| what | times cheaper | at least | than |\n|---|---|---|---|")
    measured = []
    for row in rows(short=short):
        measured.append(row)
        print(row.markdown(), flush=True)
    print()
    for row in measured:
        shown = (row.ours, row.theirs) if "texts" not in row.unit else (1 / row.ours, 1 / row.theirs)
        print(f"{row.what:42} {shown[0]:10.2f} {row.unit:18} {shown[1]:10.2f} {row.other}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    main(short=parser.parse_args().short)
