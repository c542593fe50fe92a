"""What `spool.path` costs beside memory alone, in the same run: `python -m tests.benchmarks.spool`.

Both take every span of the load of the receiver's benchmark over HTTP, put traces together, let them be read, and let
them go: with the file that is an insert before the acknowledgement and a delete later. They are processes of their
own and take turns. CPU is that of the process, per 1,000 spans; latency is that of a request as its sender sees it,
and depends on the disk: a commit waits for it, and all requests that wait share one commit.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import anyio

from tests.benchmarks.receiver import Load, Server, _ready, build

MODES = ("memory", "file")
CONNECTIONS = (1, 16)


async def serve(path: str) -> None:
    """The receiver, the assembly and the journal; with an empty path, in memory."""
    from prometheus_client import CollectorRegistry

    from tracescore.assembly import Assembly
    from tracescore.config import AssemblyConfig, Config, SpoolConfig
    from tracescore.interactions import MARKERS
    from tracescore.interactions.deduplication import Deduplication
    from tracescore.net.listener import address_of, bind, serving
    from tracescore.pipeline.defects import Defects
    from tracescore.pipeline.journal import Journal, ReadTrace
    from tracescore.pipeline.ledger import Ledger
    from tracescore.pipeline.queue import Queue
    from tracescore.pipeline.recovery import Parts
    from tracescore.pipeline.trace_reader import TraceReader
    from tracescore.receiver.http import HttpReceiver
    from tracescore.receiver.intake import Intake
    from tracescore.spool import build_spool

    registry = CollectorRegistry()
    settings = AssemblyConfig.model_validate({"idle": "300ms", "orphan_idle": "300ms"})
    config = Config(assembly=settings, spool=SpoolConfig(path=path or None))
    assembly = Assembly(config.assembly, MARKERS, registry, time.time)
    spool = build_spool(config.spool, registry)
    waiting = Queue(config.evaluators, registry)
    parts = Parts(assembly, Deduplication(registry), Ledger(registry), waiting, [])
    journal = Journal(spool, config, parts, Defects(registry), time.time)
    await journal.resume(TraceReader(config.interactions))
    bound = bind("127.0.0.1:0", "receiver.http.listen")
    async with serving(HttpReceiver(Intake(config.receiver, journal, lambda _: True, registry)), bound):
        _ready(address_of(bound), "")
        while True:
            await anyio.sleep(0.1)
            for closed in journal.closed():
                await journal.read(closed, [ReadTrace() for _ in closed.traces])
            journal.tick()


@contextmanager
def running(path: str) -> Iterator[Server]:
    command = [sys.executable, __file__, "--serve", path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Server(process)
    finally:
        process.kill()
        process.wait()


def send(server: Server, bodies: list[bytes], connections: int) -> list[float]:
    """Seconds that each request took."""

    def connection(number: int) -> list[float]:
        host, _, port = server.http.rpartition(":")
        client, took = http.client.HTTPConnection(host, int(port)), []
        for body in bodies[number::connections]:
            began = time.perf_counter()
            client.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
            answer = client.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            took.append(time.perf_counter() - began)
        client.close()
        return took

    with ThreadPoolExecutor(connections) as threads:
        return [each for took in threads.map(connection, range(connections)) for each in took]


def measure(server: Server, load: Load, requests: int, connections: int) -> tuple[float, list[float]]:
    """CPU milliseconds per 1,000 spans, until all of them have been let go; seconds of each request."""
    bodies = [load.next() for _ in range(requests)]
    before = server.cpu()
    took = send(server, bodies, connections)
    time.sleep(1.5)
    return (server.cpu() - before) / (load.spans * requests) * 1e6, took


def raw_fsync(folder: Path) -> float:
    """Median milliseconds of a write of 4 KiB that reaches the disk."""
    took = []
    with (folder / "raw").open("wb", buffering=0) as file:
        for _ in range(100):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e3


def main(folder: Path, rounds: int, requests: int) -> None:
    """Prints a table; every round takes both in turn."""
    loads = {shape: build(shape) for shape in ("ordinary", "rag")}
    cases = [(shape, connections) for shape in loads for connections in CONNECTIONS]
    cpu: dict[tuple[str, int, str], list[float]] = {(*case, mode): [] for case in cases for mode in MODES}
    latency: dict[tuple[str, int, str], list[float]] = {key: [] for key in cpu}
    with running("") as memory, running(str(folder / "spool")) as file:
        servers = {"memory": memory, "file": file}
        for server in servers.values():
            measure(server, loads["rag"], 16, 4)
        for _ in range(rounds):
            for key, figures in cpu.items():
                shape, connections, mode = key
                used, took = measure(servers[mode], loads[shape], requests, connections)
                figures.append(used)
                latency[key] += took
    print(f"a write of 4 KiB reaches the disk in {raw_fsync(folder):.1f} ms (median)")
    print(f"{'shape':10} {'connections':>11}  {'':8} {'CPU ms per 1,000 spans':>22} {'p50 ms':>8} {'p99 ms':>8}")
    for key, figures in cpu.items():
        shape, connections, mode = key
        p50, p99 = (statistics.quantiles(latency[key], n=100)[place] * 1e3 for place in (49, 98))
        print(f"{shape:10} {connections:11}  {mode:8} {statistics.median(figures):22.2f} {p50:8.1f} {p99:8.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", metavar="PATH")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the one for temporary files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=100, help="of each case in each round")
    options = parser.parse_args()
    if options.serve is not None:
        anyio.run(serve, options.serve, backend_options={"use_uvloop": True})
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as chosen:
            main(Path(chosen), options.rounds, options.requests)
