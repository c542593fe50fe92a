"""What a scrape costs the event loop: `python -m tests.benchmarks.scrape [SERIES]`.

Fills an exporter up to max_series and renders it in both formats. Prints the processor time, that of the snapshot of
all numbers, which nothing can interrupt, and the longest that another task had to wait.
"""

from __future__ import annotations

import sys
import time

import anyio
import anyio.lowlevel
from prometheus_client import CollectorRegistry

from tests.results import SettableClock, relevancy, result
from tracescore.config import PrometheusConfig, SamplingConfig
from tracescore.config.drift import DriftConfig
from tracescore.exporters.prometheus.exporter import PrometheusExporter
from tracescore.exporters.prometheus.exposition import render
from tracescore.model import Score

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


async def filled(series: int) -> CollectorRegistry:
    """A registry with nearly so many series, of services with seven routes each."""
    registry = CollectorRegistry()
    settings = PrometheusConfig(max_series=series), DriftConfig(min_count=1), SamplingConfig()
    exporter = PrometheusExporter(registry, *settings, SettableClock())
    scores = (relevancy(0.5), Score("completeness", 0.5), Score("faithfulness", 0.5))
    for number in range(series // 30):
        app = {"service": f"s{number // 7}", "slices": {"route": f"/{number % 7}"}}
        await exporter.export(result(*scores, number=number, **app))
    return registry


async def scrape(registry: CollectorRegistry, accept: str) -> tuple[float, float, float]:
    """Milliseconds of the processor, of the snapshot, and of the longest wait of another task."""
    begun = time.process_time()
    list(registry.collect())
    snapshot, longest, over = time.process_time() - begun, 0.0, anyio.Event()

    async def wait() -> None:
        nonlocal longest
        while not over.is_set():
            before = time.perf_counter()
            await anyio.lowlevel.checkpoint()
            longest = max(longest, time.perf_counter() - before)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        begun = time.process_time()
        await render(registry, accept)
        spent = time.process_time() - begun
        over.set()
    return 1e3 * spent, 1e3 * snapshot, 1e3 * longest


async def main(series: int) -> None:
    """Prints the table."""
    registry = await filled(series)
    held = registry.get_sample_value("tracescore_exporters_series")
    print(f"{held:.0f} series; milliseconds:   processor  snapshot  longest wait")
    for name, accept in (("text", ""), ("openmetrics", OPENMETRICS)):
        for _ in range(2):
            print("{:30} {:10.0f} {:9.0f} {:13.0f}".format(name, *await scrape(registry, accept)))


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, backend_options={"use_uvloop": True})
