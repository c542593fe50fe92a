"""A running service that has watched three apps for a week: 500 interactions, a release that got worse, a gold set.

The service is the real one, with its listeners. Nothing is sent to it and no judge scores: results are handed to its
ledger and exporters as the evaluators hand them over, each at its time, so that a week passes in a second.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal

from tests.openai_server import openai_server
from tests.results import SettableClock
from tests.seeded_texts import APPS, App, Known
from tracescore.config import Config
from tracescore.model import (
    LIVE_MEASURES,
    Evaluation,
    Found,
    Interaction,
    Item,
    Message,
    Result,
    Score,
    Unscored,
    Usage,
)
from tracescore.service import Service

JUDGE = "gpt"
DAYS = 7
RISING = 1.7
"""How much busier the apps have become: a third of the interactions is of the last day."""
TOKEN = "a-token-of-the-tests"
FREE = "127.0.0.1:0"
GOLD_RELEASES = ("2.3.1", "2.3.1", "2.3.1", "2.3.2", "2.4.0")
"""Which release of the first app answered each run of the gold set."""


@dataclass(frozen=True)
class Seeded:
    """Where the page of the running service is, and what its clock shows."""

    url: str
    addresses: dict[str, str]
    service: Service
    clock: SettableClock


@contextmanager
def seeded(folder: Path, count: int = 500) -> Iterator[Seeded]:
    """The service with `count` interactions of the last week; its files lie in `folder`."""
    now = time.time()
    clock = SettableClock(now - DAYS * 86_400)
    with openai_server() as models, start_blocking_portal() as portal:
        service, stop = Service(Config.model_validate(settings(folder, models.url)), clock), anyio.Event()
        running, addresses = portal.start_task(service.run, stop)
        try:
            portal.call(_fill, service, clock, now, count)
            yield Seeded(f"http://{addresses['page']}", addresses, service, clock)
        finally:
            portal.call(stop.set)
            running.result(30)


def settings(folder: Path, models: str) -> dict[str, Any]:
    """Free ports, a page that asks for a token, targets, a gold set, and answers for people to label."""
    token, gold_set = folder / "token", folder / "faq.jsonl"
    token.write_text(TOKEN)
    rows = [
        {"id": f"faq-{place:02}", "question": each.question, "reference": each.good, "tags": [each.topic]}
        for place, each in enumerate(APPS[0].known)
    ]
    gold_set.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "receiver": {"grpc": {"listen": FREE}, "http": {"listen": FREE}},
        "exporters": {"prometheus": {"listen": FREE}},
        "web": {"listen": FREE, "token": {"file": str(token)}},
        "judge": {"kind": "openai", "model": "m", "name": JUDGE, "base_url": models},
        "embedder": {"kind": "openai", "model": "m", "base_url": models},
        "spool": {"path": str(folder / "spool")},
        "drift": {
            "min_count": 20,
            "labels": {"path": str(folder / "labels"), "ratio": 1},
            "targets": {"faithfulness": 0.8, "completeness": 0.7},
        },
        "gold": {
            "set": str(gold_set),
            "store": str(folder / "runs"),
            "schedule": None,
            "on_release": False,
            "service": APPS[0].service,
            "target": {"kind": "python", "callable": "tests.seeded:answer"},
        },
    }


async def _fill(service: Service, clock: SettableClock, until: float, count: int) -> None:
    draw = random.Random(20)
    begin = clock.now
    moments = sorted(until - 60 - draw.random() ** RISING * (until - begin - 60) for _ in range(count))
    for number, moment in enumerate(moments):
        clock.now = moment
        app = draw.choices(APPS, [each.share for each in APPS])[0]
        result = _result(app, number, moment, (moment - begin) / 86_400, draw)
        service.ledger.read(result.interaction)
        service.ledger.started(result.interaction, [each.measure for each in result.evaluations])
        service.ledger.finished(result)
        for exporter in service.exporters:
            await exporter.export(result)
    await _run_gold(service, clock, until)
    clock.now = until


# ---------------------------------------------------------------- interactions and their evaluations


def _result(app: App, number: int, ended: float, day: float, draw: random.Random) -> Result:
    release, worse = next((name, share) for name, first, share in reversed(app.releases) if first <= day)
    known = draw.choice(app.known)
    state = next((name for name, share in app.states.items() if draw.random() < share), "complete")
    fails = draw.random() < worse
    interaction = Interaction(
        trace_id=f"{draw.getrandbits(128):032x}",
        span_id=f"{number + 1:016x}",
        state=state,
        question=None if state == "content_not_captured" else _worded(known.question, draw),
        answer=None if state in ("content_not_captured", "no_answer") else known.worse if fails else known.good,
        contexts=() if state in ("content_not_captured", "no_contexts") else known.passages,
        context_source="none" if state in ("content_not_captured", "no_contexts") else "retrieval",
        history=(Message("user", "Hello!"), Message("assistant", "How can I help?")) if number % 9 == 0 else (),
        service=app.service,
        release=release,
        environment="production",
        convention="openinference",
        instrumentation="openinference.instrumentation.langchain 0.1.53",
        start_unix_nano=int((ended - 1.8) * 1e9),
        end_unix_nano=int(ended * 1e9),
        slices={"route": draw.choice(app.routes), "tenant": draw.choice(("acme", "globex", "initech"))},
        found={"question": Found("rag", "input.value"), "answer": Found("rag", "output.value")},
    )
    usage = Usage(4, draw.randint(900, 1400), draw.randint(80, 160), 0.0011)
    return Result(interaction, tuple(_evaluations(known, state, fails, draw)), JUDGE, 0, usage, ended + 4)


def _worded(question: str, draw: random.Random) -> str:
    """The question as different people type it."""
    return draw.choice((question, question.lower(), question.rstrip("?؟"), f"{question} "))


def _evaluations(known: Known, state: str, fails: bool, draw: random.Random) -> Iterator[Evaluation]:
    if state in ("content_not_captured", "no_answer", "truncated"):
        for measure in LIVE_MEASURES:
            yield Unscored(measure, state)  # type: ignore[arg-type]
        return
    near = [round(draw.uniform(0.72, 0.97) - 0.25 * fails * draw.random(), 3) for _ in range(3)]
    generated = [
        Item("question", text, credit=credit)
        for text, credit in zip((known.question, *known.parts) * 3, near, strict=False)
    ]
    yield Score("answer_relevancy", sum(near) / 3, items=tuple(generated))
    if draw.random() < 0.03:
        yield Unscored("completeness", "judge_timeout")
    else:
        yield _completeness(known, fails)
    if state == "no_contexts":
        yield Unscored("faithfulness", "no_contexts")
        yield Unscored("context_precision", "no_contexts")
        return
    yield _faithfulness(known, fails)
    ranks = [
        Item("passage", text, "useful" if place == 0 else "not useful") for place, text in enumerate(known.passages)
    ]
    yield Score("context_precision", 1.0 if draw.random() < 0.8 else 0.5, items=tuple(ranks))


def _completeness(known: Known, fails: bool) -> Score:
    covered = len(known.parts) - fails
    items = [
        Item("part", part, *(("covered", known.good[:30], 1.0) if place < covered else ("missing", "", 0.0)))
        for place, part in enumerate(known.parts)
    ]
    return Score("completeness", covered / len(items), items=tuple(items), details={"strict": covered / len(items)})


def _faithfulness(known: Known, fails: bool) -> Score:
    claims = _claims(known.worse if fails else known.good)
    items = []
    for place, claim in enumerate(claims):
        passage = min(place, len(known.passages) - 1)
        quote = known.passages[passage].partition(". ")[0]
        verdict = "contradicted" if fails and place == len(claims) - 1 else "supported"
        items.append(Item("claim", claim, verdict, quote, float(verdict == "supported"), passage))
    right = sum(each.verdict == "supported" for each in items)
    return Score("faithfulness", right / len(items), items=tuple(items), details={"contradicted": len(items) - right})


def _claims(answer: str) -> list[str]:
    return [each.rstrip(".") for each in answer.split(". ")]


# ---------------------------------------------------------------- the gold set

_answering = GOLD_RELEASES[0]
"""The release of the app that is asked now."""


def answer(question: str) -> dict[str, Any]:
    """The app as the gold set asks it: its newest release answers every other question worse, an older one the last."""
    place, known = next((place, each) for place, each in enumerate(APPS[0].known) if each.question == question)
    worse = place % 2 == 0 if _answering == "2.4.0" else place == len(APPS[0].known) - 1
    return {
        "answer": known.worse if worse else known.good,
        "contexts": list(known.passages),
        "release": _answering,
    }


async def _judge(interaction: Interaction) -> Result:
    """What a judge makes of it who knows the two answers."""
    known = next(each for each in APPS[0].known if each.question == interaction.question)
    fails = interaction.answer == known.worse
    claims = _claims(known.worse if fails else known.good)
    items = [Item("claim", each, "FP" if fails and each == claims[-1] else "TP") for each in claims]
    wrong = sum(each.verdict == "FP" for each in items)
    covered = [
        Item("reference_claim", each, "missed" if fails and place else "covered")
        for place, each in enumerate(_claims(known.good))
    ]
    missed = sum(each.verdict == "missed" for each in covered)
    right = len(items) - wrong
    factual = 2 * right / (2 * right + wrong + missed) if right else 0.0
    similarity = 0.71 if fails else 0.93
    details = {"factual": factual, "similarity": similarity, "tp": right, "fp": wrong, "fn": missed}
    correctness = Score("answer_correctness", 0.75 * factual + 0.25 * similarity, "", (*items, *covered), details)
    others = (Score("answer_relevancy", 0.9), _completeness(known, fails), _faithfulness(known, fails))
    return Result(interaction, (correctness, *others), JUDGE)


async def _run_gold(service: Service, clock: SettableClock, until: float) -> None:
    global _answering
    runner = service.gold.runner
    assert runner is not None
    runner._executor = replace(runner._executor, evaluate=_judge)
    for number, release in enumerate(GOLD_RELEASES):
        _answering, clock.now = release, until - (len(GOLD_RELEASES) - number) * 86_400
        await runner.run("hand")
