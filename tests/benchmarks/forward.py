"""What scoring costs senders where requests are passed on: `python -m tests.benchmarks.forward`.

The same service twice, each a process of its own before the same destination: one scores everything with a judge that
takes a second per call, the other admits no trace. Senders export at a fixed rate, to one and to the other in turn,
and what counts is the ratio of the times that an export call takes, over all rounds together: the slowest in a
hundred of one round would be a single export. An open loop: an export that is late does not
delay the next one, and its time counts from when it was due.
"""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import grpc

from tests.benchmarks.receiver import Load, build
from tests.openai_server import Reply, Request, openai_server, sensible
from tests.otlp_sink import Sink, otlp_sink
from tracescore.config.file import load
from tracescore.service import Service

AIM = 1.5
"""How many times as long the slowest export in a hundred may take with scoring."""
_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_CONNECTIONS = 8


async def serve(file: str, *, scoring: bool) -> None:
    """The service, with or without anything admitted to scoring; ends with its standard input."""
    service = Service(load(Path(file)))
    if not scoring:
        service.intake._admits = lambda _: False
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        addresses = await tasks.start(service.run, stop)
        print(addresses["grpc"], flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
        os._exit(0)


@contextmanager
def running(judge: str, sink: Sink, *, scoring: bool) -> Iterator[grpc.Channel]:
    listen = "{listen: '127.0.0.1:0'}"
    text = (
        f"receiver: {{grpc: {listen}, http: {listen}}}\nweb: {listen}\n"
        f"exporters: {{prometheus: {listen}, forward: {{grpc: '{sink.grpc}'}}}}\n"
        f"judge: {{kind: openai, model: m, base_url: '{judge}'}}\n"
        f"embedder: {{kind: openai, model: e, base_url: '{judge}'}}\n"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        command = [sys.executable, "-m", "tests.benchmarks.forward", "--serve", file.name]
        with subprocess.Popen(
            [*command, *(["--scoring"] if scoring else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                with grpc.insecure_channel(process.stdout.readline().strip()) as channel:
                    yield channel
            finally:
                process.kill()


def export(channel: grpc.Channel, load: Load, rate: float, seconds: float) -> list[float]:
    """Milliseconds of each export from when it was due."""
    call = channel.unary_unary(_METHOD)
    due: queue.Queue[tuple[float, bytes] | None] = queue.Queue()
    taken: list[float] = []

    def sender() -> None:
        while (item := due.get()) is not None:
            call(item[1], timeout=30)
            taken.append((time.perf_counter() - item[0]) * 1000)

    threads = [threading.Thread(target=sender) for _ in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    begun = time.perf_counter()
    for number in range(int(rate * seconds)):
        at = begun + number / rate
        time.sleep(max(0.0, at - time.perf_counter()))
        due.put((at, load.next()))
    for _ in threads:
        due.put(None)
    for thread in threads:
        thread.join()
    return taken


def _slow(request: Request) -> Reply:
    return replace(sensible(request), delay=0.0 if request.is_probe else 1.0)


def main(rounds: int, seconds: float, rate: float, shape: str) -> None:
    """Prints a table; every round takes both in turn."""
    load_ = build(shape)
    taken: dict[bool, list[list[float]]] = {True: [], False: []}
    with (
        otlp_sink(read=False) as sink,
        openai_server(_slow) as judge,
        running(judge.url, sink, scoring=True) as on,
        running(judge.url, sink, scoring=False) as off,
    ):
        for channel in (on, off):
            export(channel, load_, rate, 15.0)  # until as much waits for the judge as may: nothing grows then
        for _ in range(rounds):
            for scoring, channel in ((True, on), (False, off)):
                taken[scoring].append(export(channel, load_, rate, seconds))
                sink.clear()
    print(f"{shape}: {load_.spans} spans per export, {rate:g} exports/s, {rounds} rounds of {seconds:g} s")
    print(f"{'scoring':8} {'p50 ms':>10} {'p99 ms':>10}")
    medians = {}
    for scoring, runs in taken.items():
        every = [each for run in runs for each in run]
        medians[scoring] = [_percentile(every, share) for share in (0.5, 0.99)]
        print(f"{'on' if scoring else 'off':8} {medians[scoring][0]:10.2f} {medians[scoring][1]:10.2f}")
    ratios = [on_ / off_ for on_, off_ in zip(medians[True], medians[False], strict=True)]
    print(f"{'ratio':8} {ratios[0]:10.2f} {ratios[1]:10.2f}   (aim for p99: at most {AIM})")


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", metavar="FILE")
    parser.add_argument("--scoring", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=10.0, help="exports per second")
    parser.add_argument("--shape", choices=["ordinary", "rag"], default="rag")
    options = parser.parse_args()
    if options.serve:
        anyio.run(lambda: serve(options.serve, scoring=options.scoring), backend_options={"use_uvloop": True})
    else:
        main(options.rounds, options.seconds, options.rate, options.shape)
