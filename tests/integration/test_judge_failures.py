"""What replies and failures of a real HTTP server become."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Iterator

import pytest

from tests.judging import EVIDENCE, STATEMENTS, SUPPORT, AnyEmbedder, Built, failure
from tests.openai_server import OpenAIServer, Reply, openai_server
from tests.results import interaction
from tests.timing import Hours
from tracescore.config import EvaluatorsConfig
from tracescore.errors import JudgeError, JudgeUnreachable
from tracescore.evaluators import build_evaluators, evaluate_all
from tracescore.model import Interaction

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


# ---------------------------------------------------------------- replies that cannot be used


def _claims(text: str = "A.") -> Reply:
    return Reply.json({"claims": [{"from": "t1", "text": text}], "without": []})


@pytest.mark.parametrize(
    ("replies", "reason", "outcomes"),
    [
        ([Reply("garbage"), _claims()], None, {"judge_unreadable": 1, "ok": 1}),
        ([Reply("garbage"), Reply("garbage")], "judge_unreadable", {"judge_unreadable": 2}),
        ([Reply(""), Reply(None)], "judge_unreadable", {"judge_unreadable": 2}),
        ([Reply('{"claims": [', finish="length"), _claims()], None, {"judge_truncated": 1, "ok": 1}),
        ([Reply("", finish="length")] * 2, "judge_truncated", {"judge_truncated": 2}),
        ([Reply(None, refusal="I can't.")], "judge_refused", {"judge_refused": 1}),
        ([Reply("", finish="content_filter")], "judge_refused", {"judge_refused": 1}),
        ([Reply("I'm sorry, but I can't assist.")], "judge_refused", {"judge_refused": 1}),
        ([Reply.error(400, "content_filter")], "judge_refused", {"judge_refused": 1}),
        ([Reply.error(400, "context_length_exceeded")], "judge_input_too_long", {"judge_input_too_long": 1}),
        ([Reply.error(400, "", "This model's maximum context length is 4096")], "judge_input_too_long", None),
        ([Reply.error(422, "bad_request")], "judge_unfit", {"judge_unfit": 1}),
        ([Reply.error(404, "model_not_found")], "judge_unfit", {"judge_unfit": 1}),
        ([Reply(raw=b"<html>proxy</html>")] * 2, "judge_unreachable", {"judge_unreachable": 2}),
        ([Reply(raw=b"<html>proxy</html>"), _claims()], None, {"judge_unreachable": 1, "ok": 1}),
        ([Reply.error(429, "insufficient_quota")], "judge_quota", {"judge_quota": 1}),
        ([Reply.error(402)], "judge_quota", {"judge_quota": 1}),
        ([Reply(disconnect=True), _claims()], None, {"judge_unreachable": 1, "ok": 1}),
        ([Reply.error(500)] * 2, "judge_unreachable", {"judge_unreachable": 2}),
        ([Reply(raw=b'{"error": {"code": 502, "message": "upstream"}}'), _claims()], None, {"judge_unreachable": 1}),
        ([Reply(raw=b'{"choices": []}')] * 2, "judge_unreadable", {"judge_unreadable": 2}),
        ([Reply(content=[{"type": "text", "text": '{"claims": [], "without": ["t1"]}'}])], None, {"ok": 1}),
    ],
)
async def test_every_way_to_fail_has_its_reason_and_its_counter(server, replies, reason, outcomes) -> None:
    server.queue(*replies)
    async with Built(server) as built:
        session = built.judge.session("k")
        if reason is None:
            await session.claims("", "A.")
        else:
            assert (await failure(session.claims("", "A."))).reason == reason
        assert len(server.requests) == len(replies) == session.usage.calls
        for outcome, count in (outcomes or {}).items():
            found = built.value("tracescore_judge_requests_total", operation="claims", outcome=outcome)
            assert found == count, outcome


async def test_a_reply_that_was_cut_off_gets_more_room_once_and_for_all(server) -> None:
    server.queue(Reply("", finish="length"))
    async with Built(server) as built:
        for text in ("A.", "B."):
            await built.judge.session("k").claims("", text)
    first, second, third = (request.body["max_completion_tokens"] for request in server.requests)
    assert second == third == 4 * first


async def test_the_room_for_a_reply_grows_with_what_is_asked(server) -> None:
    async with Built(server) as built:
        session = built.judge.session("k")
        for count in (1, 15):
            await session.verify([f"Statement {n}." for n in range(count)], EVIDENCE, SUPPORT)
            await session.claims("", "A sentence. " * count)
    rooms = {
        name: [r.body["max_completion_tokens"] for r in server.sent(name)] for name in ("verify_support", "claims")
    }
    for few, many in rooms.values():
        assert many > few > 1024


async def test_an_error_is_shared_by_those_who_wait_and_then_forgotten(server) -> None:
    server.queue(Reply.error(400, "bad_request", delay=0.1))
    async with Built(server) as built:
        waiting = [built.judge.session(str(n)).required_parts("A?", ()) for n in range(3)]
        errors = await asyncio.gather(*waiting, return_exceptions=True)
        assert [error.reason for error in errors if isinstance(error, JudgeError)] == ["judge_unfit"] * 3
        assert len(server.requests) == 1
        assert (await built.judge.session("k").required_parts("A?", ())).parts == ("A",)


async def test_fenced_replies_are_read_and_noisy_ones_counted(server) -> None:
    server.queue(Reply(f"<think>hm {{</think>Here: ```json\n{_claims().content}\n```"))
    async with Built(server) as built:
        assert await built.judge.session("k").claims("", "A.") == ("A.",)
        assert built.value("tracescore_judge_repaired_total") == 1


@pytest.mark.parametrize("escaped", [False, True], ids=["in the claim", "in the envelope"])
async def test_half_a_character_pair_in_a_reply_becomes_a_question_mark(server, escaped) -> None:
    """As JavaScript cuts texts: judges write it into their JSON, gateways into the envelope."""
    half = '{"claims": [{"from": "t1", "text": "Cut \\ud83d"}]}'
    content = half if not escaped else half.encode().decode("unicode_escape")
    server.queue(Reply(raw=json.dumps({"choices": [{"message": {"content": content}}]}).encode()))
    async with Built(server) as built:
        assert await built.judge.session("k").claims("", "A.") == ("Cut ?",)


async def test_questions_in_another_script_are_asked_for_again(server) -> None:
    chinese = {"words": "", "noncommittal": False, "questions": ["\u9000\u8d27\u671f\u9650\uff1f"]}
    server.queue(Reply.json(chinese | {"questions": ["What is the refund period?"]}), Reply.json(chinese))
    async with Built(server) as built:
        found = await built.judge.session("k").reverse_questions("\u9000\u8d27\u671f\u9650\u4e3a30\u5929\u3002", 1)
    assert found.questions == ("\u9000\u8d27\u671f\u9650\uff1f",)


# ---------------------------------------------------------------- sentences that are left out

FOUR = "The hall opens at nine. It closes at six. Hello there! Tickets cost 4 euros."


def _reading(*replies) -> object:
    """What is said of the sentences: (ids that make claims, ids without) per request."""
    left = list(replies)

    def script(request) -> Reply:
        making, without = left.pop(0)
        return Reply.json({"claims": [{"from": i, "text": f"Claim of {i}."} for i in making], "without": without})

    return script


@pytest.mark.parametrize(
    ("replies", "asked", "claims", "uncovered"),
    [
        ([(["t1", "t2", "t4"], ["t3"])], [None], 3, 0),
        ([(["t1"], []), (["t2", "t4"], ["t3"])], [None, ["t2", "t3", "t4"]], 3, 0),
        ([(["t1"], []), (["t2"], [])], [None, ["t2", "t3", "t4"]], 2, 2),
        ([([], []), ([], [])], [None, ["t1", "t2", "t3", "t4"]], 0, 4),
    ],
)
async def test_sentences_that_a_reply_leaves_out_are_asked_about_once_more(
    server, replies, asked, claims, uncovered
) -> None:
    server.script = _reading(*replies)
    async with Built(server) as built:
        found = await built.judge.session("k").claims("", FOUR)
        assert (len(found), found.uncovered) == (claims, uncovered)
        assert built.value("tracescore_judge_dropped_total", reason="uncovered") == uncovered
    assert [request.data.get("only") for request in server.requests] == asked


async def test_a_second_reading_that_fails_leaves_the_first(server) -> None:
    server.queue(Reply.json({"claims": [{"from": "t1", "text": "Claim."}], "without": []}), Reply.error(400, "no"))
    async with Built(server) as built:
        found = await built.judge.session("k").claims("", FOUR)
    assert (found, found.uncovered) == (("Claim.",), 3)


# ---------------------------------------------------------------- verdicts that are missing


def _answering(rows_of) -> object:
    return lambda request: Reply.json({"verdicts": rows_of(request.data["statements"], request)})


GOOD = {"verdict": "supported", "quote": "returned within 30 days"}


async def test_missing_verdicts_are_asked_for_once_more_in_small_groups(server) -> None:
    statements = [f"Statement {n}." for n in range(10)]
    server.script = _answering(
        lambda rows, request: [{"id": r["id"], **GOOD} for r in (rows[:2] if len(server.requests) == 1 else rows)]
    )
    async with Built(server) as built:
        verdicts = await built.judge.session("k").verify(statements, EVIDENCE, SUPPORT)
    assert all(verdict and verdict.value == "supported" for verdict in verdicts)
    assert [len(request.data["statements"]) for request in server.requests] == [10, 3, 3, 2]
    sent = [row["id"] for request in server.requests[1:] for row in request.data["statements"]]
    assert len(set(sent)) == 8


async def test_verdicts_missing_twice_stay_missing(server) -> None:
    server.script = _answering(lambda rows, _: [{"id": r["id"], **GOOD} for r in rows if r["text"] == STATEMENTS[0]])
    async with Built(server) as built:
        verdicts = await built.judge.session("k").verify(STATEMENTS, EVIDENCE, SUPPORT)
        assert [verdict and verdict.value for verdict in verdicts] == ["supported", None, None]
        assert built.value("tracescore_judge_dropped_total", reason="missing") == 4
    assert len(server.requests) == 2


async def test_support_without_a_quote_that_stands_in_the_evidence_is_asked_about_once_more_alone(server) -> None:
    server.script = _answering(
        lambda rows, _: [{"id": r["id"], "verdict": "supported", "quote": "within 60 days"} for r in rows]
    )
    async with Built(server) as built:
        verdicts = await built.judge.session("k").verify(STATEMENTS, EVIDENCE, SUPPORT)
        assert verdicts == (None, None, None)
        assert built.value("tracescore_judge_dropped_total", reason="evidence_unverified") == 6
    assert [len(request.data["statements"]) for request in server.requests] == [3, 1, 1, 1]


async def test_a_second_try_that_fails_costs_only_what_it_was_about(server) -> None:
    server.script = lambda request: (
        Reply.json({"verdicts": [{"id": r["id"], **GOOD} for r in request.data["statements"][:1]]})
        if len(server.requests) == 1
        else Reply.error(500)
    )
    async with Built(server, max_retries=0) as built:
        verdicts = await built.judge.session("k").verify(STATEMENTS, EVIDENCE, SUPPORT)
    assert sorted(verdict is None for verdict in verdicts) == [False, True, True]


async def test_many_statements_go_out_in_batches(server) -> None:
    statements = [f"Items can be returned within {n} days." for n in range(45)]
    async with Built(server) as built:
        verdicts = await built.judge.session("k").verify(statements, EVIDENCE, SUPPORT)
    assert [len(request.data["statements"]) for request in server.requests] == [20, 20, 5]
    assert [n for n, verdict in enumerate(verdicts) if verdict and verdict.value == "supported"] == [30]


@pytest.mark.parametrize(("statements", "evidence"), [(["a"], [" "]), ([" "], ["e"])])
async def test_nothing_blank_is_ever_judged(server, statements, evidence) -> None:
    async with Built(server) as built:
        with pytest.raises(ValueError, match="must not be blank"):
            await built.judge.session("k").verify(statements, evidence, SUPPORT)
    assert server.requests == []


# ---------------------------------------------------------------- waiting, giving up, coming back


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_honoured(server, status) -> None:
    server.queue(Reply.error(status, headers={"Retry-After": "1"}))
    hours = Hours()
    async with Built(server, hours=hours) as built:
        await built.judge.session("k").claims("", "A.")
    assert hours.asked == [1.0]


async def test_without_retry_after_the_pauses_double(server) -> None:
    server.queue(*[Reply.error(503)] * 4)
    hours = Hours()
    async with Built(server, hours=hours, max_retries=4) as built:
        await built.judge.session("k").claims("", "A.")
    for asked, longest in zip(hours.asked, (0.5, 1, 2, 4), strict=True):
        assert longest / 2 <= asked <= longest


async def test_a_wait_beyond_the_deadline_is_not_begun(server) -> None:
    server.queue(Reply.error(429, "rate_limit_exceeded", headers={"Retry-After": "60"}))
    hours = Hours()
    async with Built(server, hours=hours, deadline="5s") as built:
        error = await failure(built.judge.session("k").claims("", "A."))
        assert isinstance(error, JudgeUnreachable)
        assert error.reason == "judge_rate_limited"
        assert (await failure(built.judge.session("k").claims("", "B."))).reason == "judge_rate_limited"
    assert len(server.requests) == 1
    assert hours.asked == []


async def test_a_slow_call_times_out_and_is_tried_again(server) -> None:
    server.queue(Reply(delay=5))
    async with Built(server, timeout="200ms") as built:
        assert await built.judge.session("k").claims("", "A.") == ("A.",)
        assert built.value("tracescore_judge_requests_total", outcome="judge_timeout") == 1


async def test_one_deadline_holds_for_the_whole_interaction(server) -> None:
    hours = Hours()

    def slow(_request) -> Reply:
        hours.now += 3
        return Reply("not what was asked for")

    server.script = slow
    async with Built(server, hours=hours, deadline="5s", max_retries=9) as built:
        session = built.judge.session("k")
        assert (await failure(session.claims("", "A."))).reason == "judge_unreadable"
        assert (await failure(session.claims("", "B."))).reason == "judge_timeout"
    assert len(server.requests) == 2
    assert hours.asked == []


async def test_no_money_left_stops_all_calls_until_a_trial_succeeds(server, caplog) -> None:
    hours = Hours()
    async with Built(server, hours=hours) as built:
        await built.judge.probe()
        server.queue(Reply.error(429, "insufficient_quota", headers={"Retry-After": "0"}))
        for text in ("A.", "B.", "C."):
            error = await failure(built.judge.session("k").claims("", text))
            assert isinstance(error, JudgeUnreachable)
            assert error.reason == "judge_quota"
        assert len(server.requests) == 3  # two of the probe
        assert not built.judge.ready
        assert built.value("tracescore_judge_circuit_state", state="open") == 1
        assert "event=circuit_opened endpoint=judge cause=quota hold=60s" in caplog.text
        hours.now += 61
        assert await built.judge.session("k").claims("", "D.") == ("D.",)
        assert built.value("tracescore_judge_circuit_state", state="closed") == 1
        assert built.judge.ready


async def test_nobody_listening_is_unreachable() -> None:
    with openai_server() as gone:
        pass
    async with Built(gone) as built:
        error = await failure(built.judge.probe())
        assert isinstance(error, JudgeUnreachable)
        assert error.reason == "judge_unreachable"
        assert not built.judge.ready
        assert built.value("tracescore_judge_ready") == 0


FAILING = {"500": Reply.error(500), "unreadable": Reply("garbage"), "refused": Reply(None, refusal="I can't.")}


@pytest.mark.parametrize("reply", FAILING.values(), ids=FAILING)
async def test_an_interaction_that_could_not_be_scored_is_freed_at_once(server, reply) -> None:
    server.script = lambda _: reply
    measures = ("answer_relevancy", "completeness", "faithfulness")
    evaluators = build_evaluators(measures, EvaluatorsConfig(), AnyEmbedder({}))
    gc.disable()
    try:
        async with Built(server, AnyEmbedder({}), Hours(), max_retries=0) as built:
            for number in range(1, 6):
                asked = interaction(
                    number, question="Is this one freed?", contexts=("Within 30 days.",), context_source="retrieval"
                )
                scored = await evaluate_all(asked, evaluators, built.judge, time.time)
                assert {each.outcome for each in scored.evaluations} == {"unscored"}
            del asked, scored
        left = [each for each in gc.get_objects() if type(each) is Interaction]
        assert "Is this one freed?" not in {each.question for each in left}
    finally:
        gc.enable()
