"""CPU of the whole service beside plain parsing and a Rust collector: `python -m tests.benchmarks.end_to_end`.

The service as `serve` builds it receives, assembles, reads and queues one trace in ten; two more processes do so with a
spool, and with a judge that answers at once from a script, so that what is counted is tracescore. Plain is the server
of `receiver.py`, which only parses; the collector is rotel, which parses and forwards to a sink. They take turns; what
counts is the CPU time of each process per 1,000 spans until it has nothing left to do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import numpy as np

from tests.benchmarks import receiver
from tests.benchmarks.idle import cpu_of
from tests.benchmarks.receiver import Load, build, send_grpc, send_http
from tests.otlp_sink import otlp_sink
from tests.scripted import ScriptedSession
from tests.servers import rotel
from tracescore.config import Config
from tracescore.formulas import Vector
from tracescore.judge.operations import Claims, RequiredParts, ReverseQuestions, Verdict, Vocabulary
from tracescore.pipeline import scorer
from tracescore.service import Service

AIMS = {("rag", "http", "plain"): 1.5, ("rag", "http", "collector"): 2.5}
"""How many times cheaper than the other."""
IDLE = 0.5
"""Seconds after which a trace is complete."""
_QUIET = 0.02
"""Share of a core below which a process has nothing left to do."""


class QuickSession(ScriptedSession):
    """Answers anything at once."""

    async def reverse_questions(self, answer: str, n: int) -> ReverseQuestions:
        return ReverseQuestions(("What is it?",) * n)

    async def required_parts(self, question: str, history: Sequence[object]) -> RequiredParts:
        return RequiredParts(("what it is",), question)

    async def claims(self, question: str, text: str) -> Claims:
        return Claims((text[:40], text[40:80]))

    async def verify(
        self, statements: Sequence[str], evidence: Sequence[str], vocabulary: Vocabulary, question: str = ""
    ) -> tuple[Verdict | None, ...]:
        return tuple(Verdict(vocabulary.value[0], evidence[0][:40]) for _ in statements)


class QuickJudge:
    """Hands out such sessions."""

    name, ready, epochs, spent = "scripted", True, None, 0.0

    def __init__(self, *, away: bool) -> None:
        self._away = away

    async def probe(self) -> str:
        if self._away:
            await anyio.sleep_forever()
        return ""

    def session(self, key: str, *, remembered: bool = True) -> QuickSession:
        return QuickSession()

    async def close(self) -> None:
        """Has nothing to close."""


class QuickEmbedder:
    """One vector for everything."""

    identity = "quick"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [np.ones(4) / 2 for _ in texts]

    async def close(self) -> None:
        """Has nothing to close."""


async def serve(spool: str, *, scoring: bool) -> None:
    """The service with the scripted judge; says where it listens, and ends with its standard input.

    Not `scoring`, its judge never answers, so that all interactions wait and the oldest ones are let go.
    """
    listen = {"listen": "127.0.0.1:0"}
    config = Config.model_validate(
        {
            "receiver": {"grpc": listen, "http": listen},
            "web": listen,
            "exporters": {"prometheus": listen},
            "sampling": {"ratio": receiver.ADMITTED},
            "assembly": {"idle": f"{IDLE}s"},
            "spool": {"path": spool or None},
        }
    )
    scorer.build_judge = lambda *_: QuickJudge(away=not scoring)  # type: ignore[assignment,return-value]
    scorer.build_embedder = lambda *_: QuickEmbedder()  # type: ignore[assignment,return-value]
    service = Service(config)
    async with anyio.create_task_group() as tasks:
        addresses = await tasks.start(service.run, anyio.Event())
        print(addresses["http"], addresses["grpc"], flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
        os._exit(0)


@dataclass(frozen=True, slots=True)
class Running:
    """A server in a process of its own, and where it listens."""

    http: str
    grpc: str
    pid: int

    def settle(self) -> float:
        """Waits until it has nothing left to do; the seconds of CPU it has used by then."""
        spent = cpu_of(self.pid)
        while True:
            time.sleep(IDLE)
            before, spent = spent, cpu_of(self.pid)
            if spent - before < _QUIET * IDLE:
                return spent


@contextmanager
def _started(*command: str) -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        http, _, grpc = process.stdout.readline().strip("\n").partition(" ")
        yield Running(http, grpc, process.pid)
    finally:
        process.kill()
        process.wait()


@contextmanager
def _collector(folder: Path) -> Iterator[Running]:
    before = set(_rotels())
    with otlp_sink(read=False) as sink, rotel(sink.http, folder) as collector:
        (pid,) = set(_rotels()) - before
        yield Running(collector.http.removeprefix("http://"), collector.grpc.removeprefix("http://"), pid)


def _rotels() -> Iterator[int]:
    for each in Path("/proc").glob("[0-9]*/comm"):
        if each.read_text().startswith("rotel"):
            yield int(each.parent.name)


@contextmanager
def servers() -> Iterator[dict[str, Running]]:
    """All of them, by name."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        module, folder = ("-m", "tests.benchmarks.end_to_end", "--serve"), Path(name)
        started = {
            "service": stack.enter_context(_started(*module, "")),
            "with a spool": stack.enter_context(_started(*module, str(folder / "spool.db"))),
            "and scoring": stack.enter_context(_started(*module, "", "--scoring")),
        }
        started["plain"] = stack.enter_context(_started(receiver.__file__, "--serve", "plain"))
        started["collector"] = stack.enter_context(_collector(folder))
        yield started


def _http(server: Running, load: Load, requests: int) -> None:
    send_http(server, load, requests, compress=False)  # type: ignore[arg-type]  # it asks for the addresses alone


SENDS: dict[str, Callable[[Running, Load, int], None]] = {"http": _http, "grpc": send_grpc}  # type: ignore[dict-item]


def measure(rounds: int, requests: int) -> dict[tuple[str, str, str], float]:
    """Milliseconds of CPU per 1,000 spans, by shape, protocol and server."""
    loads = {shape: build(shape) for shape in ("ordinary", "rag")}
    values: dict[tuple[str, str, str], list[float]] = {}
    with servers() as started:
        for turn in range(rounds + 1):  # the first one warms up
            for shape, load in loads.items():
                for protocol, send in SENDS.items():
                    for name, server in started.items():
                        if protocol == "grpc" and not server.grpc:
                            continue
                        spent = server.settle()
                        send(server, load, requests if turn else requests // 5)
                        used = server.settle() - spent
                        if turn:
                            values.setdefault((shape, protocol, name), []).append(1e6 * used / requests / load.spans)
    return {case: statistics.median(found) for case, found in values.items()}


def main(rounds: int, requests: int) -> None:
    """Prints the table."""
    found = measure(rounds, requests)
    print(f"{'spans':10} {'protocol':8} {'server':14} {'CPU ms / 1,000':>15} {'times ours':>14}")
    for (shape, protocol, name), value in found.items():
        ratio, aim = value / found[shape, protocol, "service"], AIMS.get((shape, protocol, name))
        shown = f"   (aim: {aim})" if aim else ""
        print(f"{shape:10} {protocol:8} {name:14} {value:15.2f} {ratio:12.1f}x{shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", metavar="SPOOL")
    parser.add_argument("--scoring", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=200, help="of each case in each round")
    options = parser.parse_args()
    if options.serve is not None:
        anyio.run(partial(serve, options.serve, scoring=options.scoring), backend_options={"use_uvloop": True})
    else:
        main(options.rounds, options.requests)
