"""Scores as Phoenix annotations: what a Phoenix is sent, whatever it answers, and what a real one makes of it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from tests.phoenix_server import Phoenix
from tests.results import relevancy, result
from tracescore.config import PhoenixExporterConfig
from tracescore.errors import UsageError
from tracescore.exporters import delivery
from tracescore.exporters.delivery import DEFAULT_LIMITS, Limits
from tracescore.exporters.phoenix import DROPPED, PhoenixExporter
from tracescore.model import Item, Score, Unscored
from tracescore.net.retry import Backoff

pytestmark = pytest.mark.anyio


class Scripted:
    """Answers with what is scripted, else takes annotations of the spans it knows, as Phoenix does."""

    def __init__(self) -> None:
        self.url = ""
        self.statuses: list[int] = []
        self.missing: set[str] = set()
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.taken: list[dict[str, Any]] = []
        self.changed = anyio.Event()

    async def handle(self, request: web.Request) -> web.Response:
        assert request.query["sync"] == "true"
        body = json.loads(await request.read())
        self.requests.append((dict(request.headers), body))
        answer = self._answer(body["data"])
        self.changed.set()
        self.changed = anyio.Event()
        return answer

    def _answer(self, annotations: list[dict[str, Any]]) -> web.Response:
        if self.statuses:
            return web.Response(status=self.statuses.pop(0), headers={"Retry-After": "0"})
        missing = self.missing & {annotation["span_id"] for annotation in annotations}
        if missing:
            return web.Response(status=404, text=f"Spans with IDs {', '.join(missing)} do not exist.")
        self.taken += annotations
        return web.json_response({"data": []})

    async def wait(self, enough: Callable[[], bool]) -> None:
        with anyio.fail_after(10):
            while not enough():
                await self.changed.wait()


@pytest.fixture
async def phoenix_like() -> AsyncIterator[Scripted]:
    scripted = Scripted()
    app = web.Application()
    app.router.add_post("/v1/span_annotations", scripted.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    scripted.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield scripted
    await runner.cleanup()


class Exporting:
    def __init__(self, exporter: PhoenixExporter, registry: CollectorRegistry) -> None:
        self.exporter, self._registry = exporter, registry

    def count(self, name: str) -> float | None:
        return self._registry.get_sample_value(f"tracescore_exporters_phoenix_{name}")

    def lost(self) -> dict[str, float]:
        name = "tracescore_exporters_phoenix_dropped_total"
        counts = {reason: self._registry.get_sample_value(name, {"reason": reason}) for reason in DROPPED}
        return {reason: count for reason, count in counts.items() if count}


@asynccontextmanager
async def exporting(
    endpoint: str, limits: Limits = DEFAULT_LIMITS, *, language_model: bool = True, **settings: Any
) -> AsyncIterator[Exporting]:
    registry = CollectorRegistry()
    chosen = PhoenixExporterConfig(endpoint=endpoint, **settings)
    exporter = PhoenixExporter(chosen, registry, limits, language_model=language_model)
    try:
        yield Exporting(exporter, registry)
    finally:
        await exporter.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", Backoff(first=0.02))


async def test_each_score_is_an_annotation_of_the_evaluated_span_and_what_is_unscored_is_none(
    phoenix_like: Scripted,
) -> None:
    scored = result(
        Score("answer_relevancy", 0.25, label="noncommittal"),
        Unscored("completeness", "judge_timeout"),
        Score("faithfulness", 0.5, details={"contradicted": 1.0}),
    )
    async with exporting(phoenix_like.url) as export:
        await export.exporter.export(scored)
        await phoenix_like.wait(lambda: len(phoenix_like.taken) == 2)
    about = {"judge": "embedded-v2", "epoch": 0}
    common = {
        "span_id": scored.interaction.span_id,
        "annotator_kind": "LLM",
        "identifier": "tracescore/embedded-v2",
    }
    assert phoenix_like.taken == [
        {
            **common,
            "name": "answer_relevancy",
            "result": {"score": 0.25, "label": "noncommittal"},
            "metadata": {**about, "score_id": scored.score_id("answer_relevancy")},
        },
        {
            **common,
            "name": "faithfulness",
            "result": {"score": 0.5},
            "metadata": {**about, "score_id": scored.score_id("faithfulness"), "contradicted": 1.0},
        },
    ]
    assert (export.count("sent_total"), export.count("waiting"), export.lost()) == (2, 0, {})


async def test_a_judge_without_a_language_model_is_code(phoenix_like: Scripted) -> None:
    async with exporting(phoenix_like.url, language_model=False) as export:
        await export.exporter.export(result(relevancy(0.5)))
        await phoenix_like.wait(lambda: len(phoenix_like.taken) == 1)
    assert phoenix_like.taken[0]["annotator_kind"] == "CODE"


@pytest.mark.parametrize("explanations", [False, True])
async def test_texts_of_users_go_along_only_when_asked_for(phoenix_like: Scripted, explanations: bool) -> None:
    claim = Item("claim", "Returns take 30 days. ", "supported", "within 30 days", 1.0)
    async with exporting(phoenix_like.url, explanations=explanations) as export:
        await export.exporter.export(result(Score("faithfulness", 1.0, items=(claim,))))
        await phoenix_like.wait(lambda: len(phoenix_like.taken) == 1)
    shown = phoenix_like.taken[0]["result"].get("explanation")
    assert shown == ('supported: Returns take 30 days.  - "within 30 days"' if explanations else None)


async def test_the_key_goes_along(phoenix_like: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"exporters\.phoenix\.api_key: .*PHOENIX_KEY_OF_THE_TEST"):
        async with exporting(phoenix_like.url, api_key={"env": "PHOENIX_KEY_OF_THE_TEST"}):
            pass
    monkeypatch.setenv("PHOENIX_KEY_OF_THE_TEST", "secret")
    async with exporting(phoenix_like.url, api_key={"env": "PHOENIX_KEY_OF_THE_TEST"}) as export:
        await export.exporter.export(result(relevancy(0.5)))
        await phoenix_like.wait(lambda: len(phoenix_like.taken) == 1)
    assert phoenix_like.requests[0][0]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_phoenix_that_is_busy_gets_the_same_annotations_again(phoenix_like: Scripted, status: int) -> None:
    phoenix_like.statuses = [status, status]
    async with exporting(phoenix_like.url) as export:
        await export.exporter.export(result(relevancy(0.5)))
        await phoenix_like.wait(lambda: len(phoenix_like.taken) == 1)
    bodies = [body for _, body in phoenix_like.requests]
    assert bodies == [bodies[0]] * 3
    assert (export.count("failed_requests_total"), export.count("sent_total"), export.lost()) == (2, 1, {})


@pytest.mark.parametrize("status", [307, 400, 401, 403, 422])
async def test_a_refusal_is_final(phoenix_like: Scripted, status: int) -> None:
    phoenix_like.statuses = [status]
    async with exporting(phoenix_like.url) as export:
        await export.exporter.export(result(relevancy(0.5), Score("completeness", 0.5)))
        await phoenix_like.wait(lambda: len(phoenix_like.requests) == 1)
    assert export.lost() == {"refused": 2}
    assert export.count("sent_total") == 0


@pytest.mark.usefixtures("impatient")
async def test_a_span_that_is_not_there_yet_is_waited_for_and_holds_nothing_up(phoenix_like: Scripted) -> None:
    early = result(relevancy(0.5), number=1)
    phoenix_like.missing = {early.interaction.span_id}
    async with exporting(phoenix_like.url) as export:
        await export.exporter.export(early)
        for number in (2, 3):
            await export.exporter.export(result(relevancy(0.5), number=number))
        await phoenix_like.wait(lambda: len(phoenix_like.taken) == 2)
        assert early.interaction.span_id not in {each["span_id"] for each in phoenix_like.taken}
        phoenix_like.missing = set()
        await phoenix_like.wait(lambda: len(phoenix_like.taken) == 3)
    assert (export.count("sent_total"), export.count("waiting"), export.lost()) == (3, 0, {})


@pytest.mark.usefixtures("impatient")
async def test_a_span_that_never_comes_is_given_up(phoenix_like: Scripted) -> None:
    gone = result(relevancy(0.5), Score("completeness", 1.0), number=1)
    phoenix_like.missing = {gone.interaction.span_id}
    async with exporting(phoenix_like.url, Limits(give_up=0.1)) as export:
        await export.exporter.export(gone)
        await phoenix_like.wait(lambda: len(phoenix_like.requests) >= 2)
        await export.exporter.close()
    assert export.lost() == {"not_found": 2}


@pytest.mark.usefixtures("impatient")
async def test_a_404_that_names_no_span_counts_for_all(phoenix_like: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    async with exporting(f"{phoenix_like.url}/elsewhere", Limits(give_up=0.1)) as export:
        for number in (1, 2):
            await export.exporter.export(result(relevancy(0.5), number=number))
        await export.exporter.close()
    assert export.lost() == {"not_found": 2}


async def test_a_dead_phoenix_costs_the_flow_nothing_and_every_annotation_is_counted() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    async with exporting(endpoint, Limits(waiting=5, flush=0.05)) as export:
        started = time.monotonic()
        for number in range(50):
            await export.exporter.export(result(relevancy(0.5), number=number + 1))
        assert time.monotonic() - started < 1
        await export.exporter.close()
    assert export.lost() == {"queue_full": 45, "shutdown": 5}


@pytest.mark.server
@pytest.mark.timeout(400)
async def test_a_real_phoenix_keeps_one_annotation_per_measure_and_judge(phoenix: Phoenix) -> None:
    scored = result(Score("answer_relevancy", 0.25, label="noncommittal"), Score("completeness", 1.0), number=0xA1)
    again = result(Score("answer_relevancy", 0.75), Score("completeness", 1.0), number=0xA1)
    interaction = scored.interaction
    async with exporting(phoenix.url) as export:
        await export.exporter.export(scored)
        await anyio.sleep(0.3)
        assert export.count("sent_total") == 0  # scored before the span is there
        phoenix.send_span(interaction.trace_id, interaction.span_id)
        await anyio.to_thread.run_sync(lambda: phoenix.wait_annotations([interaction.span_id], 2))
        await export.exporter.export(again)
        await export.exporter.close()
        assert (export.count("sent_total"), export.lost()) == (4, {})
    found = {row["name"]: row for row in phoenix.wait_annotations([interaction.span_id], 2)}
    assert {name: row["result"]["score"] for name, row in found.items()} == {
        "answer_relevancy": 0.75,
        "completeness": 1,
    }
    assert {row["annotator_kind"] for row in found.values()} == {"LLM"}
    assert {row["identifier"] for row in found.values()} == {"tracescore/embedded-v2"}
    assert found["completeness"]["metadata"]["score_id"] == scored.score_id("completeness")
