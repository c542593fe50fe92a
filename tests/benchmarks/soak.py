"""Steady load for longer than anything is kept: `python -m tests.benchmarks.soak [--minutes 110] [--rate 20]`.

Every second `--rate` answers arrive over OTLP/HTTP, each a trace of its own with texts of its own; a scripted judge
answers over HTTP, results go to the spool and to an OTLP destination, and /metrics is scraped every 15 s. Each minute
prints the resident memory, open files, threads and size of the spool of `tracescore serve`, and what waits. Windows and
spool hold an hour of figures, and the ids of 100,000 traces are remembered, 83 minutes at this rate; memory grows until
then. At the end stands how far the last ten minutes lie above the ten after that: a leak shows there.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tests import otlp
from tests.openai_server import OpenAIServer, openai_server
from tests.otlp_sink import Sink, otlp_sink
from tests.running import FREE_PORTS, Running, serving

WARM = 85
"""Minutes until all that is bounded is full, at the usual rate."""
COMPARED = 10
SCRAPE = 15.0


class Figures(NamedTuple):
    """Of one minute; sizes in bytes."""

    resident: float
    files: float
    threads: float
    spool: float
    scored: float
    pending: float


def answer(number: int) -> bytes:
    """An export request with one trace: a retriever and the root with question and answer."""
    now = time.time_ns()
    times = {"start_time_unix_nano": now, "end_time_unix_nano": now + 1_000_000}
    rule = f"Order {number} ships {number % 9 + 2} days after payment and costs {number % 40 + 3} euros."
    texts = {"input.value": f"When does order {number} ship?", "output.value": rule}
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": rule * 3}
    root = otlp.span(2 * number, 0, number, {"openinference.span.kind": "CHAIN", **texts}, name="rag", **times)
    below = otlp.span(2 * number + 1, 2 * number, number, found, name="retrieve", **times)
    return otlp.traces([root, below]).SerializeToString()


def send(address: str, rate: float, over: threading.Event) -> None:
    """Sends at an even pace until `over`; what is refused is sent again, as an exporter does."""
    connection = http.client.HTTPConnection(address, timeout=30)
    due = time.monotonic()
    for number in itertools.count(1):
        while True:
            connection.request("POST", "/v1/traces", answer(number), {"Content-Type": "application/x-protobuf"})
            response = connection.getresponse()
            response.read()
            if response.status == 200 or over.wait(1.0):
                break
        due += 1 / rate
        if over.wait(max(0.0, due - time.monotonic())):
            return


def look(service: Running, spool: Path) -> Figures:
    """What the kernel and the service say of it now."""
    process = Path(f"/proc/{service.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Figures(
        float(status["VmRSS"].split()[0]) * 1024,
        len(list((process / "fd").iterdir())),
        float(status["Threads"]),
        sum(file.stat().st_size for file in spool.parent.glob(f"{spool.name}*")),
        service.value("tracescore_evaluations_total", outcome="scored"),
        service.value("tracescore_evaluations_pending"),
    )


def minute(service: Running, judge: OpenAIServer, sink: Sink, spool: Path) -> Figures:
    """Waits for a minute and scrapes meanwhile; the judge and the destination forget what they were sent."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        service.get("metrics", "/metrics")
        judge.requests.clear()
        sink.clear()
        time.sleep(min(SCRAPE, max(0.0, until - time.monotonic())))
    return look(service, spool)


def main(minutes: int, rate: float) -> None:
    """Prints a line for each minute, and at the end what grew."""
    with tempfile.TemporaryDirectory() as name, openai_server() as judge, otlp_sink() as sink:
        spool, over = Path(name) / "spool.db", threading.Event()
        settings = f"{FREE_PORTS}spool: {{path: {spool}}}\n{judge.settings}"
        with serving(Path(name), settings, "--otlp-out", sink.http) as service:
            sender = threading.Thread(target=send, args=(service.addresses["http"], rate, over))
            sender.start()
            print(f"{'minute':>6} {'MB':>7} {'files':>6} {'threads':>8} {'spool MB':>9} {'scored':>8} {'pending':>8}")
            seen: list[Figures] = []
            for number in range(1, minutes + 1):
                seen.append(minute(service, judge, sink, spool))
                now = seen[-1]
                print(
                    f"{number:6} {now.resident / 1e6:7.1f} {now.files:6.0f} {now.threads:8.0f} {now.spool / 1e6:9.1f} "
                    f"{now.scored:8.0f} {now.pending:8.0f}",
                    flush=True,
                )
            over.set()
            sender.join()
    if minutes > WARM + COMPARED:
        for field in ("resident", "files", "threads", "spool"):
            early, late = (
                statistics.mean(getattr(each, field) for each in part)
                for part in (seen[WARM : WARM + COMPARED], seen[-COMPARED:])
            )
            print(f"{field}: {100 * (late / early - 1):+.1f} % from minute {WARM} to the last {COMPARED}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=int, default=110)
    parser.add_argument("--rate", type=float, default=20.0)
    options = parser.parse_args()
    main(options.minutes, options.rate)
