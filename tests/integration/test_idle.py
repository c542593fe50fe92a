"""A service that receives nothing waits for events and for due moments: it does not tick.

Counted are the rounds of the real event loop while its clock goes ahead to the next timer: an hour takes a moment,
and a busy machine changes nothing.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from tests.gold_runs import write_set
from tests.otlp import span, traces
from tests.servers import free_port
from tracescore.config import Config
from tracescore.service import Service

_HOUR = 3600.0
_FREE = {
    "receiver": {"grpc": {"listen": "127.0.0.1:0"}, "http": {"listen": "127.0.0.1:0"}},
    "exporters": {"prometheus": {"listen": "127.0.0.1:0"}},
    "web": {"listen": "127.0.0.1:0"},
}


class _Selector(selectors.DefaultSelector):
    """Never waits for a timer once it is `leaping`, and counts the rounds of the loop."""

    leaping, rounds, leapt = False, 0, 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.rounds += 1
        if not self.leaping or timeout is None:
            return super().select(timeout)
        events = super().select(0)
        if not events:
            self.leapt += max(0.0, timeout)
        return events


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return time.monotonic() + self.selector.leapt


T = TypeVar("T")


def _serving(config: dict[str, Any], work: Callable[[Service, _Loop], Awaitable[T]]) -> T:
    """What `work` returns once the service has started; its clock goes with the loop's, which leaps from then on."""
    loop = _Loop()

    async def serve() -> T:
        service, stop = Service(Config.model_validate(_FREE | config), lambda: 1.8e9 + loop.time()), anyio.Event()
        async with anyio.create_task_group() as tasks:
            await tasks.start(service.run, stop)
            if "judge" not in config:
                await service.scorer.fit.wait()
            loop.selector.leaping = True
            done = await work(service, loop)
            loop.selector.leaping = False
            stop.set()
        return done

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(serve())


def _away(_folder: Path) -> dict[str, Any]:
    return {"judge": {"kind": "openai", "base_url": f"http://127.0.0.1:{free_port()}/v1", "model": "m"}}


def _spool(folder: Path) -> dict[str, Any]:
    return {"spool": {"path": str(folder / "spool.db")}}


def _gold(folder: Path) -> dict[str, Any]:
    target = {"kind": "http", "url": f"http://127.0.0.1:{free_port()}/ask", "answer": "answer"}
    return {"gold": {"set": str(write_set(folder / "gold.jsonl")), "target": target, "schedule": "0 3 1 1 *"}}


@pytest.mark.parametrize(
    ("config", "most"),
    [
        pytest.param(lambda _folder: {}, 3, id="embedded judge"),
        pytest.param(_away, 4, id="judge away"),
        pytest.param(_spool, 4, id="spool"),
        pytest.param(_gold, 9, id="gold set"),
    ],
)
def test_an_idle_service_wakes_about_once_a_second(
    tmp_path: Path, config: Callable[[Path], dict[str, Any]], most: int
) -> None:
    async def idle(_service: Service, loop: _Loop) -> float:
        before = loop.selector.rounds
        await anyio.sleep(_HOUR)
        return (loop.selector.rounds - before) / _HOUR  # a timer takes two

    assert _serving(config(tmp_path), idle) <= most


@pytest.mark.parametrize("idle", [0.2, 5.0, 30.0])
def test_what_comes_to_an_idle_service_is_read_when_it_is_due(idle: float) -> None:
    body = traces([span(1, attrs={"gen_ai.operation.name": "chat"})]).SerializeToString()

    async def read(service: Service, loop: _Loop) -> float:
        await anyio.sleep(60)
        await service.intake.accept("http", "traces", body)
        since = loop.time()
        while not service.report.genai_spans._value.get():  # noqa: ASYNC110 - the service has no event for it
            await anyio.sleep(0.01)
        return loop.time() - since

    waited = _serving({"assembly": {"idle": f"{idle}s"}}, read)
    assert idle <= waited < idle + 0.2
