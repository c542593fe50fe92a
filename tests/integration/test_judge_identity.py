"""Whether a judge can do the work, which model answers, and what it costs, against a real HTTP server."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest
from prometheus_client import CollectorRegistry

from tests.judging import AnyEmbedder, Built, failure
from tests.openai_server import OpenAIServer, Reply, by, openai_server, sensible
from tests.scripted import interaction
from tests.timing import Hours
from tracescore.config import DEFAULT_MEASURES, EvaluatorsConfig, OpenAIEmbedderConfig, PriceConfig
from tracescore.embedder.openai import OpenAIEmbedder
from tracescore.errors import EmbedderError, JudgeUnfit
from tracescore.evaluators import build_evaluators, evaluate_all
from tracescore.judge.client import OpenAIJudge
from tracescore.judge.epoch import STEADY
from tracescore.judge.operations import Vocabulary
from tracescore.model import Unscored
from tracescore.runtime import gather

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


# ---------------------------------------------------------------- the probe


async def test_a_fit_judge_is_ready_after_a_short_text_and_a_long_one(server) -> None:
    async with Built(server) as built:
        assert not built.judge.ready
        await built.judge.probe()
        assert built.judge.ready
        assert built.value("tracescore_judge_ready", judge="m") == 1
    short, long = (len(request.raw) for request in server.requests)
    assert short < 5_000
    assert long > 20_000


def _knowing(**refused):
    """A server that answers 400 to parameters it does not know."""

    def script(request):
        for field, values in refused.items():
            value = request.body.get(field)
            kind = value["type"] if isinstance(value, dict) else "any"
            if value is not None and kind in values:
                return Reply.error(400, "unsupported_parameter", f"{field} is not supported", field)
        return sensible(request)

    return script


@pytest.mark.parametrize("lowered", ["json_object", "text"])
async def test_a_form_of_reply_that_was_given_up_is_tried_again_after_an_hour(server, lowered: str) -> None:
    refused = {"json_schema"} if lowered == "json_object" else {"json_schema", "json_object"}
    server.script, hours = _knowing(response_format=refused), Hours()

    async def asked() -> list[str]:
        server.requests.clear()
        evidence = ["It takes 5 days."]
        (verdict,) = await built.judge.session("1").verify(["It takes 5 days."], evidence, Vocabulary.SUPPORT)
        assert verdict is not None
        return [request.body.get("response_format", {"type": "text"})["type"] for request in server.requests]

    async with Built(server, hours=hours) as built:
        await built.judge.probe()
        assert await asked() == [lowered]
        hours.now += 3_601
        tries = ["json_schema", "json_object", "text"]
        assert await asked() == tries[: tries.index(lowered) + 1], "once each, and then as before"
        assert await asked() == [lowered]
        server.script = sensible
        hours.now += 3_601
        assert await asked() == ["json_schema"]
        assert await asked() == ["json_schema"], "it stays"


async def test_a_parameter_of_the_user_that_is_refused_is_named(server) -> None:
    parameters = {"seed": 7, "user": "x", "extra_body": {"top_k": 1}}
    async with Built(server, parameters=parameters) as built:
        for named, field in (("judge.parameters.seed", "seed"), ("judge.parameters.extra_body.top_k", "top_k")):
            detail = {"detail": [{"loc": ["body", field], "msg": "Extra inputs are not permitted"}]}
            server.script = lambda _, detail=detail: Reply(status=422, raw=json.dumps(detail).encode())
            error = await failure(built.judge.probe())
            assert error.detail == (
                f"the endpoint names {named}; remove what it refuses (HTTP 422: request not understood)"
            )


async def test_once_the_limit_of_money_is_reached_only_requests_under_way_pass_it(server) -> None:
    server.script = lambda request: replace(sensible(request), delay=0.02)
    price = PriceConfig(input=1_000, output=0)  # a request costs 1
    async with Built(server, price=price, max_concurrency=3) as built:
        assert isinstance(built.judge, OpenAIJudge)
        built.judge.limit_cost(10)
        evaluators = build_evaluators(DEFAULT_MEASURES, EvaluatorsConfig(), AnyEmbedder({}))
        asked = [interaction(f"What is {n}?", f"It is {n}.", contexts=(f"It is {n}.",)) for n in range(12)]
        results = await gather([partial(evaluate_all, each, evaluators, built.judge, time.time) for each in asked])
        assert 10 <= built.judge.spent <= 10 + 3 - 1
        assert len(server.requests) == built.judge.spent
    reasons = {each.reason for result in results for each in result.evaluations if isinstance(each, Unscored)}
    assert reasons == {"judge_quota"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (_knowing(), ("json_schema", "max_completion_tokens", 0)),
        (_knowing(response_format={"json_schema"}), ("json_object", "max_completion_tokens", 0)),
        (_knowing(response_format={"json_schema", "json_object"}), (None, "max_completion_tokens", 0)),
        (_knowing(max_completion_tokens={"any"}), ("json_schema", "max_tokens", 0)),
        (_knowing(temperature={"any"}), ("json_schema", "max_completion_tokens", None)),
        (
            _knowing(
                temperature={"any"}, max_completion_tokens={"any"}, response_format={"json_schema", "json_object"}
            ),
            (None, "max_tokens", None),
        ),
    ],
)
async def test_what_the_endpoint_understands_is_found_by_asking(server, script, expected) -> None:
    server.script = script
    async with Built(server) as built:
        await built.judge.probe()
        await built.judge.session("k").claims("", "A.")
    body = server.requests[-1].body
    mode, limit, temperature = expected
    assert body.get("response_format", {}).get("type") == mode
    assert [key for key in body if key.startswith("max_")] == [limit]
    assert body.get("temperature") == temperature


async def test_a_mode_that_gives_garbage_is_not_used(server) -> None:
    server.script = lambda r: Reply("garbage") if r.body.get("response_format") else sensible(r)
    async with Built(server) as built:
        await built.judge.probe()
    assert ["response_format" in request.body for request in server.requests] == [True] * 4 + [False] * 2


def _cutting(keep):
    """A runtime that silently cuts long texts."""

    def script(request):
        if not request.is_probe:
            return sensible(request)
        data = request.data | {"evidence": keep(request.data["evidence"])}
        message = {"role": "user", "content": f"DATA\n{json.dumps(data)}\nEND"}
        messages = [request.body["messages"][0], message]
        return sensible(type(request)(request.path, request.headers, json.dumps({"messages": messages}).encode()))

    return script


def _all(verdict):
    return lambda r: Reply.json(
        {
            "verdicts": [
                {"id": row["id"], "quote": r.data["evidence"][0], "verdict": verdict} for row in r.data["statements"]
            ]
        }
    )


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        (_cutting(lambda texts: texts[:20]), "did not find what the last lines of a text of about 6000 tokens say"),
        (_cutting(lambda texts: texts[-20:]), "did not find what the first lines of a text of about 6000 tokens say"),
        (
            _all("supported"),
            'too weak for the work: it said "supported" on "The code word of locker 7 is turpentine." where the text',
        ),
        (_all("not_found"), 'too weak for the work: it said "not_found" on "The code word of locker 7 is marmalade."'),
        (lambda _r: Reply("Looks fine to me."), "use a model that can write JSON"),
        (lambda _r: Reply("", finish="length"), "the reply was cut off; set judge.context to the window of the model"),
        (lambda _r: Reply(None, refusal="no"), "refused a harmless question; use another model"),
        (
            lambda _r: Reply.error(401, "invalid_api_key"),
            "HTTP 401 invalid_api_key: access denied; check judge.api_key",
        ),
        (lambda _r: Reply.error(404), "HTTP 404: not found; check judge.base_url and .model"),
        (lambda _r: Reply.error(400, "context_length_exceeded"), "reads too little"),
    ],
)
async def test_a_judge_that_cannot_judge_is_refused_with_what_to_change(server, script, advice) -> None:
    server.script = script
    async with Built(server) as built:
        error = await failure(built.judge.probe())
        assert isinstance(error, JudgeUnfit)
        assert advice in error.detail
        assert "\n" not in error.detail
        assert not built.judge.ready


async def test_a_judge_that_comes_back_is_ready_again(server) -> None:
    server.queue(Reply.error(503, headers={"Retry-After": "0"}), Reply.error(503))
    async with Built(server) as built:
        assert (await failure(built.judge.probe())).reason == "judge_unreachable"
        await built.judge.probe()
        assert built.judge.ready


# ---------------------------------------------------------------- who answered


async def test_two_models_within_one_interaction_are_not_scored(server) -> None:
    server.script = lambda r: by("model-b" if r.prompt == "verify_coverage" else "model-a")(r)
    evaluators = build_evaluators(DEFAULT_MEASURES, EvaluatorsConfig(), AnyEmbedder({}))
    async with Built(server) as built:
        result = await evaluate_all(interaction(), evaluators, built.judge, time.time)
    assert [e.reason for e in result.evaluations if isinstance(e, Unscored)] == ["judge_mixed"] * 3


async def test_another_model_is_a_new_epoch_only_when_it_stays(server) -> None:
    async def epoch(model: str) -> int:
        server.script = by(model)
        session = built.judge.session("k")
        await session.reverse_questions("Any.", 1)
        return session.epoch

    async with Built(server) as built:
        flips = [await epoch(model) for model in ["a", "b", "a", *"bb", "a", *"bbbb", "a"]]
        assert set(flips) == {0}
        assert built.value("tracescore_judge_info", model="a", epoch="0") == 1
        steps = [await epoch("b") for _ in range(STEADY + 1)]
        assert steps == [0] * STEADY + [1]
        assert built.value("tracescore_judge_info") == 1
        assert built.value("tracescore_judge_info", model="b", epoch="1") == 1


async def test_what_one_model_said_is_not_remembered_for_another(server) -> None:
    async with Built(server) as built:
        for model, calls in [("a", 1), ("a", 1), ("b", 2), ("b", 3), ("b", 4)]:
            server.script = by(model)
            session = built.judge.session("k")
            await session.reverse_questions("Any.", 1)
            await session.required_parts("A?", ())
            assert len(server.sent("required_parts")) == calls
        await built.judge.session("k").required_parts("A?", ())
        assert len(server.sent("required_parts")) == 5


@asynccontextmanager
async def _embedding(server, saved: bytes | None = None, **settings) -> AsyncIterator[tuple[Built, OpenAIEmbedder]]:
    """A judge and an embedder on one server, after their start."""
    given = {"kind": "openai", "model": "e", "base_url": server.url, "max_retries": 0} | settings
    embedder = OpenAIEmbedder(OpenAIEmbedderConfig(**given), CollectorRegistry())
    async with Built(server, embedder=embedder) as built:
        if saved is not None:
            built.judge.epochs.resume(saved)
        await built.judge.probe()
        yield built, embedder
    await embedder.close()


async def test_an_embedder_that_is_replaced_behind_its_name_starts_a_new_epoch(server) -> None:
    server.width = 384
    async with _embedding(server) as (built, embedder):
        before = built.judge.epochs.fingerprint
        assert (await embedder.embed(["A."])).shape == (1, 384)
        assert built.judge.session("k").epoch == 0
        server.width = 96
        for _ in range(STEADY):
            assert built.judge.session("k").epoch == 0
            with pytest.raises(EmbedderError):
                await embedder.embed(["A."])
        assert built.judge.session("k").epoch == 1
        assert (await embedder.embed(["A."])).shape == (1, 96)
        assert built.judge.epochs.fingerprint != before
        assert built.value("tracescore_judge_info", embedder="e", epoch="1") == 1


@pytest.mark.parametrize(("width", "epoch"), [(384, 0), (96, 1)])
async def test_an_embedder_that_is_replaced_between_two_starts_is_noticed_before_the_first_score(
    server, width: int, epoch: int
) -> None:
    server.width = 384
    async with _embedding(server) as (before, _):
        fingerprint, saved = before.judge.epochs.fingerprint, before.judge.epochs.state()
    server.width = width
    async with _embedding(server, saved) as (after, _):
        assert after.judge.session("k").epoch == epoch
        assert (after.judge.epochs.fingerprint == fingerprint) is (epoch == 0)


async def test_an_embedder_that_is_away_neither_keeps_the_judge_from_its_work_nor_begins_an_epoch(server) -> None:
    async with _embedding(server) as (before, _):
        saved = before.judge.epochs.state()
    async with _embedding(server, saved, base_url="http://127.0.0.1:9/v1") as (after, embedder):
        assert after.judge.ready
        assert embedder.identity is None
        assert after.judge.session("k").epoch == 0


def test_the_fingerprint_holds_embedder_and_parameters(server) -> None:
    def fingerprint(**settings) -> str:
        judge = Built(server, **settings).judge
        assert isinstance(judge, OpenAIJudge)
        return judge.epochs.fingerprint

    found = {fingerprint(), fingerprint(embedder=AnyEmbedder({})), fingerprint(parameters={"seed": 1})}
    assert len(found) == 3
    assert fingerprint() == fingerprint()


# ---------------------------------------------------------------- what it costs


async def test_tokens_and_money_are_added_up_per_interaction_and_operation(server) -> None:
    async with Built(server, price=PriceConfig(input=2.0, output=10.0)) as built:
        session = built.judge.session("k")
        await session.claims("", "A.")
        await session.reverse_questions("A.", 1)
        usage = session.usage
        assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 2000, 100)
        assert usage.cost == pytest.approx(2 * (1000 * 2.0 + 50 * 10.0) / 1e6)
        assert built.value("tracescore_judge_tokens_total", operation="claims", direction="input") == 1000
        assert built.value("tracescore_judge_cost_total", operation="claims") == pytest.approx(usage.cost / 2)


async def test_without_a_price_the_cost_is_unknown_not_zero(server) -> None:
    async with Built(server) as built:
        session = built.judge.session("k")
        await session.claims("", "A.")
        assert session.usage.cost is None


async def test_a_reply_without_token_counts_is_estimated_and_said_so(server) -> None:
    server.script = lambda r: Reply(**{**vars(sensible(r)), "usage": None})
    async with Built(server) as built:
        session = built.judge.session("k")
        await session.claims("", "A.")
        assert session.usage.input_tokens > 300
        assert built.value("tracescore_judge_usage_estimated_total") == 1


async def test_a_judge_that_takes_as_long_for_every_answer_is_not_taken_for_a_slow_one(server) -> None:
    few = {"prompt_tokens": 1, "completion_tokens": 1}
    server.script = lambda request: replace(sensible(request), usage=few, delay=0.5)
    async with Built(server, timeout="3s") as built:
        await built.judge.probe()
        assert built.judge.ready


async def test_a_judge_that_reports_few_tokens_is_not_taken_for_a_slow_one(server) -> None:
    few = {"prompt_tokens": 1, "completion_tokens": 1}
    server.script = lambda request: replace(sensible(request), usage=few, delay=0.05)
    async with Built(server, timeout="5s") as built:
        await built.judge.probe()
