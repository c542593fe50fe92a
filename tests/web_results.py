"""Results and requests for the tests of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from tests import results
from tests.results import NOW
from tracescore.config import DEFAULT_MEASURES, Config, WebConfig
from tracescore.config.drift import DriftConfig
from tracescore.drift.releases import Releases
from tracescore.drift.watch import DriftWatch
from tracescore.gold.runner import GoldRunner
from tracescore.interactions import content_switch
from tracescore.model import Clock, Evaluation, Found, Interaction, Item, Result, Score, Unscored, Usage
from tracescore.net.access import AccessMetrics
from tracescore.pipeline.ledger import Snapshot, Tally
from tracescore.web.pages import Pages
from tracescore.web.saving import Saving

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def interaction(**changes: Any) -> Interaction:
    told: dict[str, Any] = {
        "trace_id": TRACE,
        "span_id": SPAN,
        "question": "What is the return window, and does it cover opened items?",
        "answer": "You can return items within 30 days of purchase.",
        "contexts": ("Items may be returned within 30 days.", "Opened items can be returned for store credit."),
        "context_source": "retrieval",
        "convention": "openinference",
        "slices": {"route": "/ask"},
        "found": {"question": Found("ask", "input.value")},
    }
    return results.interaction(**({"ended": NOW} | told | changes))


def evaluations(relevancy: float = 0.81) -> tuple[Evaluation, ...]:
    return (
        Score(
            "answer_relevancy", relevancy, items=(Item("question", "How long can I return items?", credit=relevancy),)
        ),
        Score(
            "completeness",
            0.5,
            items=(
                Item("part", "What is the return window?", "covered", "within 30 days", 1.0),
                Item("part", "Does it cover opened items?", "missing", "", 0.0),
            ),
            details={"strict": 0.5},
        ),
        Unscored("faithfulness", "judge_incomplete", lo=0.25, hi=0.75),
    )


def result(evaluated: tuple[Evaluation, ...] | None = None, judge: str = "embedded-v2", **changes: Any) -> Result:
    return Result(
        interaction(**changes),
        evaluations() if evaluated is None else evaluated,
        judge,
        usage=Usage(4, 812, 96, 0.0012, cached=2),
        finished=NOW,
    )


LEDGER = Snapshot(
    spans=57_301,
    interactions={"complete": 7_013, "no_contexts": 211, "content_not_captured": 0},
    evaluations={
        "answer_relevancy": Tally(6_907, 19, {"needs_history": 298}),
        "completeness": Tally(6_811, 23, {"needs_history": 331, "no_parts": 59}),
        "faithfulness": Tally(6_503, 29, {"no_contexts": 211, "no_claims": 463, "queue_full": 18}),
    },
)


def pages(
    settings: WebConfig | None = None,
    ledger: Snapshot | Callable[[], Snapshot] = LEDGER,
    keep: int = 100,
    gold: GoldRunner | None = None,
    saving: Saving | None = None,
    releases: Releases | None = None,
    changes: DriftWatch | None = None,
    clock: Clock = lambda: NOW,
) -> Pages:
    return Pages(
        settings or WebConfig(keep=keep),
        (lambda: ledger) if isinstance(ledger, Snapshot) else ledger,
        clock,
        registry := CollectorRegistry(),
        AccessMetrics(registry),
        releases=releases or Releases(CollectorRegistry(), clock),
        endpoints={"grpc": "http://127.0.0.1:14317", "http/protobuf": "http://127.0.0.1:14318"},
        target=DriftConfig(targets={"completeness": 0.6, "faithfulness": None}).target,
        switch=content_switch,
        gold=gold,
        saving=saving,
        changes=changes,
    )


def watched_pages(clock: Clock = lambda: NOW, **settings: Any) -> tuple[Pages, DriftWatch]:
    """Pages beside the detectors that they show; both are to be given the results."""
    config = Config()
    watch = DriftWatch(CollectorRegistry(), config.drift, config.sampling, DEFAULT_MEASURES, clock)
    return pages(changes=watch, clock=clock, **settings), watch


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: str


async def ask(
    app: Pages, path: str = "/", query: str = "", method: str = "GET", body: bytes = b"", **headers: str
) -> Reply:
    """One request by ASGI, with the path as the server hands it over: already percent-decoded."""
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in ({"host": "127.0.0.1:9465"} | headers).items()],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *content = sent
    decoded = {name.decode(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], decoded, b"".join(each["body"] for each in content).decode())
