"""A service on free ports, a sample app that sends to it, and a table that shows what comes out."""

import time
from functools import partial

import anyio

from tracescore.config import (
    AssemblyConfig,
    Config,
    ExportersConfig,
    ListenerConfig,
    PrometheusConfig,
    ReceiverConfig,
    WebConfig,
)
from tracescore.config.drift import DriftConfig
from tracescore.demo.app import SampleApp
from tracescore.demo.questions import AnswerKind
from tracescore.demo.table import DemoTable
from tracescore.service import Service

_ANY = "127.0.0.1:0"

_PATIENCE = 120.0
"""Seconds that the first scores may take on a slow machine."""

SETTINGS = Config(
    receiver=ReceiverConfig(grpc=ListenerConfig(listen=_ANY), http=ListenerConfig(listen=_ANY)),
    assembly=AssemblyConfig.model_validate({"idle": "1s"}),
    drift=DriftConfig(min_count=5),
    exporters=ExportersConfig(prometheus=PrometheusConfig(listen=_ANY)),
    web=WebConfig(listen=_ANY),
)
"""The defaults, but on free ports, and quicker to show something than a service in production should be."""


async def run(stop: anyio.Event, exit_after: int | None = None) -> list[str]:
    """Runs until `stop` is set, or asks `exit_after` questions and waits until their answers are scored.

    Returns why the scores do not tell the kinds of answers apart, a sentence each; empty when they do.
    """
    links: dict[str, str] = {}

    def kind_of(trace_id: str) -> AnswerKind | None:
        return sample.kind_of(trace_id)  # made below, once there is an address to send to

    table = DemoTable(kind_of, links, exit_after=exit_after)
    service_stop = anyio.Event()
    async with anyio.create_task_group() as serving:
        addresses = await serving.start(Service(SETTINGS, watchers=[table]).run, service_stop)
        links["page"] = f"http://{addresses['page']}/"
        links["metrics"] = f"http://{addresses['metrics']}/metrics"
        sample = SampleApp(addresses["grpc"], time.time)
        table.start()
        async with anyio.create_task_group() as watching:
            watching.start_soon(_set_when, table.done, stop)
            if exit_after is not None:
                watching.start_soon(_set_after, _PATIENCE + 5 * exit_after, stop)
            await _send(sample, stop, exit_after)
            watching.cancel_scope.cancel()
        service_stop.set()
    return table.verdict()


async def send(endpoint: str, stop: anyio.Event) -> None:
    """The sample app alone: sends to the OTLP receiver (gRPC) at HOST:PORT until `stop` is set."""
    await _send(SampleApp(endpoint, time.time), stop)


async def _send(sample: SampleApp, stop: anyio.Event, total: int | None = None) -> None:
    async with anyio.create_task_group() as sending:
        sending.start_soon(partial(sample.run, total=total))
        await stop.wait()
        sending.cancel_scope.cancel()
    await sample.close()


async def _set_after(seconds: float, stop: anyio.Event) -> None:
    """So that a demo in which nothing is scored ends too; its verdict then says what is missing."""
    await anyio.sleep(seconds)
    stop.set()


async def _set_when(done: anyio.Event, stop: anyio.Event) -> None:
    await done.wait()
    stop.set()
