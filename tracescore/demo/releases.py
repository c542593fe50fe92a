"""`tracescore demo --releases`: two apps whose last release is bad, and what tracescore says is wrong with each.

A day and a half of answers comes within a minute: the spans are dated as those days went. One release retrieves the
passages that share least with the question, the other has lost the question from its prompt. Both answer faithfully
what nobody asked, so the answers look alike, and only the context side tells the two apart.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
from opentelemetry.sdk.trace import TracerProvider
from rich.console import Console

from tracescore.config.drift import BaselineConfig, DriftConfig
from tracescore.demo.app import PASSAGES, Delivery, provider_of, ranked, report_answer, retrieve
from tracescore.demo.documents import SERVICES, DemoService, Document
from tracescore.demo.questions import QUESTIONS, DemoQuestion
from tracescore.demo.run import SETTINGS
from tracescore.drift.diagnosis import Pattern
from tracescore.model import LIVE_MEASURES, Result
from tracescore.service import Service

PAUSE = 360.0
"""Seconds between two answers of an app: 240 a day, and a day with 200 is enough to learn from here."""
GOOD, BAD = 252, 96
"""Answers of the good release and of the bad one. Both ask every question equally often."""
BLOCK = 96
"""Answers sent before their scores are waited for; the SDK drops spans beyond 2,048."""
DRIFT = DriftConfig(tolerance=0.1, baseline=BaselineConfig(scores=200, days=1))
"""As much as can be learned from one day, and no more precise than that."""


@dataclass(frozen=True, slots=True)
class BadRelease:
    """A service, its next release, and the pattern that this has to show."""

    service: DemoService
    release: str
    pattern: Pattern

    def answer(self, question: DemoQuestion, *, good: bool) -> tuple[Sequence[tuple[Document, float]], str]:
        """What is retrieved for a question, and the answer to it."""
        found = retrieve(question.text, self.service.documents)
        if good:
            return found, question.answers["good"]
        if self.pattern == "retrieval":
            found = ranked(question.text, self.service.documents)[::-1][:PASSAGES]
            return found, _beginning(found[0][0])
        return found, _beginning(found[1][0])


def _beginning(document: Document) -> str:
    """What a model says that was given a passage and asked nothing of it."""
    return ". ".join(document.text.split(". ")[:2]).rstrip(".") + "."


RELEASES = (BadRelease(SERVICES["shop"], "2.5.0", "retrieval"), BadRelease(SERVICES["hr"], "1.9.0", "prompting"))


class _Scored:
    """An exporter that counts what was scored."""

    def __init__(self) -> None:
        self.count = 0
        self._more = anyio.Event()

    async def export(self, result: Result) -> None:
        del result
        self.count += 1
        self._more.set()
        self._more = anyio.Event()

    async def until(self, count: int) -> None:
        """Returns once so many were scored."""
        while self.count < count:
            await self._more.wait()

    async def close(self) -> None:
        """Nothing to release."""


async def run(stop: anyio.Event, exit_after: int | None = None) -> list[str]:
    """Sends the answers of all releases and says what the service finds, then waits for `stop`, unless `exit_after`.

    `exit_after` is the number of answers to send at most. Returns a sentence for each release that is not told.
    """
    console, scored, problems = Console(highlight=False), _Scored(), list[str]()
    service = Service(SETTINGS.model_copy(update={"measures": LIVE_MEASURES, "drift": DRIFT}), watchers=[scored])
    service_stop = anyio.Event()
    async with anyio.create_task_group() as serving:
        addresses = await serving.start(service.run, service_stop)
        console.print(
            f"page     http://{addresses['page']}/\nmetrics  http://{addresses['metrics']}/metrics", soft_wrap=True
        )
        async with anyio.create_task_group() as sending:
            sending.start_soon(_cancel_when, stop, sending.cancel_scope)
            await _send(addresses["grpc"], scored, console, exit_after)
            sending.cancel_scope.cancel()
        if not stop.is_set() and service.drift is not None:
            problems = _say(service.drift.show()["services"], console)
            if exit_after is None:
                console.print("The page shows the same with its evidence. Ctrl-C ends.")
                await stop.wait()
        service_stop.set()
    return problems


async def _cancel_when(stop: anyio.Event, scope: anyio.CancelScope) -> None:
    await stop.wait()
    scope.cancel()


async def _send(endpoint: str, scored: _Scored, console: Console, most: int | None) -> None:
    """Sends all answers in the order of their times, a block when the one before is scored."""
    plan = [(bad, number) for number in range(GOOD + BAD) for bad in RELEASES][:most]
    now, delivery = time.time(), Delivery(endpoint)
    providers: dict[tuple[str, str], TracerProvider] = {}
    console.print(f"{len(plan)} answers of two apps, dated over the last {(GOOD + BAD) * PAUSE / 86_400:.1f} days ...")
    for start in range(0, len(plan), BLOCK):
        for bad, number in plan[start : start + BLOCK]:
            release = bad.service.releases[-1] if number < GOOD else bad.release
            key = bad.service.name, release
            provider = providers.get(key) or providers.setdefault(key, provider_of(bad.service, release, delivery))
            asked = [question for question in QUESTIONS if SERVICES[question.service] is bad.service]
            question = asked[number % len(asked)]
            found, answer = bad.answer(question, good=number < GOOD)
            at = now - (GOOD + BAD - number) * PAUSE
            report_answer(provider.get_tracer("sample-rag-app"), bad.service.route, question.text, found, answer, at)
        sent = min(start + BLOCK, len(plan))
        await scored.until(sent)
        console.print(f"{sent} of {len(plan)} scored")
    for provider in providers.values():
        await anyio.to_thread.run_sync(provider.shutdown)


def _say(services: Sequence[Mapping[str, Any]], console: Console) -> list[str]:
    """Prints what the service finds; a sentence for each release of which it does not find what is wrong."""
    told = {each["service"]: each for each in services}
    problems = []
    for bad in RELEASES:
        found = told.get(bad.service.name, {"pattern": "none", "advice": "nothing was scored"})
        console.print(f"{bad.service.name} {bad.release}: {found['pattern']}. {found['advice']}", soft_wrap=True)
        if found["pattern"] != bad.pattern:
            problems.append(f"{bad.service.name} {bad.release}: {bad.pattern} expected; got {found['pattern']}")
    return problems
