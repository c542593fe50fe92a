"""What providers and servers really send: one table of their behaviours, each ending in scores or in the right reason.

The forms are those of public documentation and bug reports of OpenAI, Azure, Anthropic, Gemini, Bedrock, Mistral, Groq,
DeepSeek, OpenRouter, LiteLLM, vLLM, SGLang, TGI, llama.cpp and Ollama.
"""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.judging import AnyEmbedder, Built
from tests.openai_server import MODEL, OpenAIServer, Reply, Request, Script, openai_server, sensible
from tests.results import interaction
from tests.timing import Hours
from tracescore.config import DEFAULT_MEASURES, EvaluatorsConfig
from tracescore.errors import JudgeError
from tracescore.evaluators import build_evaluators, evaluate_all
from tracescore.model import Unscored

pytestmark = pytest.mark.anyio


def body(status: int, value: Any, **fields: Any) -> Reply:
    """An error whose body is `value` as JSON."""
    return Reply(status=status, raw=json.dumps(value).encode(), **fields)


def google(status: int, code: str, message: str, **error: Any) -> Reply:
    """An error as Gemini's OpenAI endpoint wraps it."""
    return body(status, [{"error": {"code": status, "message": message, "status": code, **error}}])


def once(*replies: Reply) -> Script:
    """These for the first questions after the probe, then sensible answers."""
    left = list(replies)
    return lambda request: left.pop(0) if left and not request.is_probe else sensible(request)


def at_first(*replies: Reply) -> Script:
    """These for the first requests of the probe, then sensible answers."""
    left = list(replies)
    return lambda request: left.pop(0) if left else sensible(request)


def always(reply: Reply) -> Script:
    """The same for everything."""
    return lambda _request: reply


def later(reply: Reply) -> Script:
    """Sensible for the probe, and this ever after."""
    return lambda request: sensible(request) if request.is_probe else reply


def refusing(field: str, reply: Reply, form: str = "") -> Script:
    """This while a request has the field, or its `response_format` that form."""

    def script(request: Request) -> Reply:
        value = request.body.get(field)
        refused = value is not None and (not form or value["type"] == form)
        return reply if refused else sensible(request)

    return script


def both(first: Script, second: Script) -> Script:
    """What the first one refuses, then what the second one does."""
    return lambda request: reply if (reply := first(request)).status != 200 else second(request)


def written(change: Callable[[str], str]) -> Script:
    """Sensible answers, written in another way."""
    return lambda request: (reply := sensible(request)) and replace(reply, content=change(reply.content or ""))


def enveloped(**changes: Any) -> Script:
    """Sensible answers in another envelope."""
    return lambda request: replace(sensible(request), **changes)


def in_parts(request: Request) -> Reply:
    return replace(sensible(request), content=[{"type": "text", "text": sensible(request).content}])


def thinking_apart(request: Request) -> Reply:
    """vLLM's and DeepSeek's reasoning parser: what was thought stands beside the content."""
    payload = json.loads(sensible(request).payload())
    payload["choices"][0]["message"]["reasoning_content"] = 'First {"verdicts": []}, but no.'
    return Reply(raw=json.dumps(payload).encode())


def as_tool_call(request: Request) -> Reply:
    """A gateway that serves a schema by a tool: the reply stands in the arguments of its call."""
    call = {"id": "1", "type": "function", "function": {"name": "reply", "arguments": sensible(request).content}}
    return choice({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


def choice(message: Any, finish: str | None) -> Reply:
    """A completion with this message."""
    body = {"model": MODEL, "choices": [{"index": 0, "finish_reason": finish, "message": message}]}
    return Reply(raw=json.dumps(body).encode())


def streamed(request: Request) -> Reply:
    """A proxy that streams whatever it was asked for."""
    text = sensible(request).content or ""
    pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
    chunks = [{"model": MODEL, "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    ends = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": None}]
    lines = "".join(f"data: {json.dumps(each)}\n\n" for each in [*chunks, *ends])
    raw = f": hello\n\n{lines}data: [DONE]\n\n".encode()
    return Reply(raw=raw, headers={"Content-Type": "text/event-stream"})


def only_reasoned(request: Request) -> Reply:
    """A reasoning parser that takes all of the reply for thought, as vLLM's does of models that do not think."""
    return choice({"role": "assistant", "content": None, "reasoning_content": sensible(request).content}, "stop")


def verdicts(change: Callable[[dict[str, Any]], Any]) -> Script:
    """Sensible answers whose verdicts are written in another way."""

    def script(request: Request) -> Reply:
        reply = json.loads(sensible(request).content or "")
        if "verdicts" in reply:
            reply["verdicts"] = [change(row) for row in reply["verdicts"]]
        return Reply.json(reply)

    return script


def in_http_date(seconds: int) -> str:
    """A moment as Retry-After may put it."""
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


def cut_while_small(request: Request) -> Reply:
    """A model that thinks aloud, and needs more room than was asked for."""
    room = request.body.get("max_completion_tokens", 0)
    return sensible(request) if room > 1_500 else Reply("", finish="length")


def without_system(request: Request) -> Reply:
    """A chat template (Gemma's) that knows no system role."""
    if request.body["messages"][0]["role"] == "system":
        return body(400, {"error": {"message": "System role not supported", "type": "BadRequestError", "code": 400}})
    return sensible(request)


def tail_lost(request: Request) -> Reply:
    """A runtime that cuts what is longer than its window."""
    return sensible(request) if len(request.raw) < 9_000 else Reply.json({"verdicts": []})


@dataclass(frozen=True)
class Case:
    """`reason`: None for scores. `waits`: the pauses that were asked for, where that is the point."""

    script: Script
    reason: str | None = None
    waits: tuple[float, ...] | None = None


LENGTH = "This model's maximum context length is 4096 tokens. However, your messages resulted in 6000 tokens."
PYDANTIC = {"detail": [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs are not permitted"}]}
UNSUPPORTED = "Unsupported parameter: '{0}' is not supported with this model."
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
USED_UP = {
    "x-ratelimit-remaining-requests": "9",
    "x-ratelimit-remaining-tokens": "0",
    "x-ratelimit-reset-requests": "2s",
    "x-ratelimit-reset-tokens": "6s",
}
TPM = (
    "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in {}."
)
NEVER = "Request too large for m on tokens per min (TPM): Limit 6000, Requested 7500. Reduce your message size."


def unsupported(field: str) -> Reply:
    return Reply.error(400, "unsupported_parameter", UNSUPPORTED.format(field), field)


PROVIDERS: dict[str, Case] = {
    # -- waiting
    "OpenAI: 429 with Retry-After": Case(
        once(Reply.error(429, "rate_limit_exceeded", headers={"Retry-After": "3"})), None, (3.0,)
    ),
    "OpenAI: 429 with retry-after-ms": Case(once(Reply.error(429, headers={"retry-after-ms": "1500"})), None, (1.5,)),
    "OpenAI: 429, the time in prose, seconds": Case(
        once(Reply.error(429, "rate_limit_exceeded", TPM.format("7.66s"))), None, (7.66,)
    ),
    "OpenAI: 429, the time in prose, ms": Case(
        once(Reply.error(429, "rate_limit_exceeded", TPM.format("350ms"))), None, (0.35,)
    ),
    "OpenAI: 429, the time in prose, minutes": Case(
        once(Reply.error(429, "rate_limit_exceeded", TPM.format("1m30.5s"))), None, (90.5,)
    ),
    "Azure: 429, retry after so many seconds": Case(
        once(
            body(429, {"error": {"code": "429", "message": "Exceeded call rate limit. Please retry after 9 seconds."}})
        ),
        None,
        (9.0,),
    ),
    "Gemini: 429 in a list, retryDelay": Case(
        once(google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", details=[RETRY_INFO])), None, (7.0,)
    ),
    "TGI: 503 while the model loads": Case(
        once(body(503, {"error": "Model m is currently loading", "estimated_time": 20.0})), None, (20.0,)
    ),
    "llama.cpp: 503 while the model loads": Case(
        at_first(body(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}))
    ),
    "Anthropic: 529 overloaded": Case(
        once(body(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}))
    ),
    "TGI: 429 overloaded, flat": Case(once(body(429, {"error": "Model is overloaded", "error_type": "overloaded"}))),
    "OpenRouter: 200 with an error inside": Case(
        once(body(200, {"error": {"code": 502, "message": "Provider returned error"}}))
    ),
    "a proxy's 502 in HTML": Case(once(Reply(status=502, raw=b"<html>Bad gateway</html>"))),
    "a proxy's page with status 200": Case(once(Reply(raw=b"<!doctype html><title>Sign in</title>"))),
    "null instead of an answer": Case(once(Reply(raw=b"null"))),
    "null in the probe": Case(at_first(Reply(raw=b"null"))),
    "content null": Case(once(Reply(None))),
    "no choices": Case(once(body(200, {"choices": []}))),
    "a connection that breaks": Case(once(Reply(disconnect=True))),
    # -- keys, money, models
    "OpenAI: wrong key": Case(always(Reply.error(401, "invalid_api_key", "Incorrect API key provided")), "judge_unfit"),
    "Gemini: wrong key, as 400 in a list": Case(
        always(google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")), "judge_unfit"
    ),
    "OpenAI: no credit left": Case(
        later(Reply.error(429, "insufficient_quota", "You exceeded your current quota")), "judge_quota"
    ),
    "Anthropic: credit too low, as 400": Case(
        later(Reply.error(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API")),
        "judge_quota",
    ),
    "DeepSeek: 402": Case(later(body(402, {"error": {"message": "Insufficient Balance"}})), "judge_quota"),
    "OpenRouter: 402 with metadata": Case(
        later(body(402, {"error": {"code": 402, "message": "More credits needed"}})), "judge_quota"
    ),
    "Ollama: model not pulled": Case(
        always(body(404, {"error": {"message": 'model "m" not found, try pulling it first'}})), "judge_unfit"
    ),
    "Azure: deployment unknown": Case(
        always(body(404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}})),
        "judge_unfit",
    ),
    "Mistral: model unknown, flat, as 400": Case(
        always(body(400, {"object": "error", "message": "Invalid model: m", "type": "invalid_model", "code": "1500"})),
        "judge_unfit",
    ),
    # -- length
    "OpenAI: context_length_exceeded": Case(
        later(Reply.error(400, "context_length_exceeded", LENGTH)), "judge_input_too_long"
    ),
    "vLLM: too long, flat body": Case(
        later(body(400, {"object": "error", "message": LENGTH, "type": "BadRequestError", "code": 400})),
        "judge_input_too_long",
    ),
    "Anthropic: prompt is too long": Case(
        later(Reply.error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")),
        "judge_input_too_long",
    ),
    "Gemini: input token count": Case(
        later(
            google(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
            )
        ),
        "judge_input_too_long",
    ),
    "TGI: inputs and new tokens": Case(
        later(body(422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"})),
        "judge_input_too_long",
    ),
    "llama.cpp: exceeds the context, as 400": Case(
        later(body(400, {"error": {"code": 400, "message": "the request exceeds the available context size"}})),
        "judge_input_too_long",
    ),
    "llama.cpp: exceeds the context, as 500": Case(
        later(body(500, {"error": {"code": 500, "message": "the request exceeds the available context size"}})),
        "judge_input_too_long",
    ),
    "Bedrock: input is too long": Case(
        later(body(400, {"message": "Input is too long for requested model."})), "judge_input_too_long"
    ),
    "Groq: 413, more than the limit of a minute": Case(
        later(Reply.error(413, "rate_limit_exceeded", NEVER)), "judge_input_too_long"
    ),
    "OpenAI: 429 for what can never fit": Case(
        later(Reply.error(429, "rate_limit_exceeded", NEVER)), "judge_input_too_long", ()
    ),
    # -- parameters
    "no max_completion_tokens": Case(refusing("max_completion_tokens", unsupported("max_completion_tokens"))),
    "no max_completion_tokens, pydantic's detail": Case(refusing("max_completion_tokens", body(422, PYDANTIC))),
    "no max_completion_tokens, Gemini's words": Case(
        refusing(
            "max_completion_tokens",
            google(400, "INVALID_ARGUMENT", 'Unknown name "max_completion_tokens": Cannot find field.'),
        )
    ),
    "neither limit": Case(
        both(
            refusing("max_completion_tokens", unsupported("max_completion_tokens")),
            refusing("max_tokens", body(400, {"detail": "max_tokens: unknown field"})),
        )
    ),
    "OpenAI: no temperature but 1": Case(
        refusing(
            "temperature", Reply.error(400, "unsupported_value", "'temperature' does not support 0 with this model.")
        )
    ),
    "no temperature, detail as text": Case(
        refusing("temperature", body(400, {"detail": "temperature is not allowed"}))
    ),
    "no JSON schema": Case(
        refusing("response_format", Reply.error(400, "", "response_format json_schema"), "json_schema")
    ),
    "DeepSeek: no JSON schema": Case(
        refusing(
            "response_format",
            Reply.error(400, "invalid_request_error", "This response_format type is unavailable now"),
            "json_schema",
        )
    ),
    "no response_format, pydantic's detail": Case(
        refusing(
            "response_format",
            body(422, {"detail": [{"loc": ["body", "response_format", "type"], "msg": "not permitted"}]}),
        )
    ),
    "Gemma: no system role": Case(without_system),
    "everything refused, one by one": Case(
        both(
            refusing("max_completion_tokens", body(422, PYDANTIC)),
            both(
                refusing("temperature", unsupported("temperature")),
                refusing("response_format", unsupported("response_format")),
            ),
        )
    ),
    # -- replies
    "fences": Case(written(lambda text: f"```json\n{text}\n```")),
    "words around": Case(written(lambda text: f"Sure! Here it is:\n{text}\nHope this helps.")),
    "think block": Case(written(lambda text: f"<think>Hm {{no}}.</think>\n{text}")),
    "think block opened by the template": Case(written(lambda text: f"Hm, no.</think>\n{text}")),
    "reasoning beside the content": Case(thinking_apart),
    "content in parts": Case(in_parts),
    "no usage": Case(enveloped(usage=None)),
    "no model": Case(enveloped(model=None)),
    "a thinking model that needs room": Case(cut_while_small),
    "garbage once in the probe": Case(at_first(Reply("garbage"))),
    "garbage whenever a form is asked for": Case(
        lambda r: Reply("garbage") if r.body.get("response_format") else sensible(r)
    ),
    "garbage always": Case(always(Reply("garbage")), "judge_unfit"),
    "refusal as a field": Case(later(Reply(None, refusal="I can't.")), "judge_refused"),
    "Azure: content filter in innererror": Case(
        later(body(400, {"error": {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}})),
        "judge_refused",
    ),
    "filtered at the end": Case(later(Reply("", finish="content_filter")), "judge_refused"),
    "cut off always": Case(always(Reply("", finish="length")), "judge_unfit"),
    "a window smaller than the texts": Case(tail_lost, "judge_unfit"),
    # -- and others that were found later
    "a schema served by a tool": Case(as_tool_call),
    "the same, with arguments as an object": Case(
        lambda r: Reply(raw=(as_tool_call(r).raw or b"").replace(b"null", b'""', 1))
    ),
    "a function call of the old kind": Case(
        lambda r: choice({"content": None, "function_call": {"name": "f", "arguments": sensible(r).content}}, "stop")
    ),
    "a stream that nobody asked for": Case(streamed),
    "all of the reply taken for thought": Case(only_reasoned),
    "content in parts, thinking among them": Case(
        lambda r: replace(
            sensible(r),
            content=[{"type": "thinking", "thinking": "{"}, {"type": "output_text", "text": sensible(r).content}],
        )
    ),
    "a refusal among the parts": Case(
        later(choice({"content": [{"type": "refusal", "refusal": "I can't."}]}, "stop")), "judge_refused"
    ),
    "finish_reason null": Case(lambda r: choice({"content": sensible(r).content}, None)),
    "finish_reason eos_token": Case(enveloped(finish="eos_token")),
    "finish_reason in capitals": Case(enveloped(finish="STOP")),
    "cut off, as MAX_TOKENS": Case(later(Reply("", finish="MAX_TOKENS")), "judge_truncated"),
    "cut off, as max_tokens": Case(later(Reply('{"verdicts": [', finish="max_tokens")), "judge_truncated"),
    "cut off, as model_length": Case(later(Reply("", finish="model_length")), "judge_truncated"),
    "Gemini: filtered, as SAFETY": Case(later(Reply("", finish="SAFETY")), "judge_refused"),
    "Gemini: filtered, as RECITATION": Case(later(Reply("", finish="RECITATION")), "judge_refused"),
    "Anthropic: finish_reason refusal": Case(later(Reply("", finish="refusal")), "judge_refused"),
    "Groq: the form failed on its side": Case(
        once(Reply.error(400, "json_validate_failed", "Failed to generate JSON. Please adjust your prompt."))
    ),
    "OpenRouter: an error in the choice": Case(
        once(body(200, {"choices": [{"error": {"code": 502, "message": "Overloaded"}, "finish_reason": "error"}]}))
    ),
    "OpenRouter: a rate limit with status 200": Case(
        once(body(200, {"error": {"code": 429, "message": "Rate limited, try again in 4s"}})), None, (4.0,)
    ),
    "an error with its code as text, status 200": Case(
        once(body(200, {"error": {"code": "429", "message": "Try again in 4s"}})), None, (4.0,)
    ),
    "an error at the top, status 200": Case(
        once(body(200, {"object": "error", "message": "Internal error", "code": 50001}))
    ),
    "Retry-After as a date": Case(once(Reply.error(429, headers={"Retry-After": in_http_date(40)})), None, None),
    "OpenAI: rate limit headers alone": Case(
        once(Reply.error(429, headers=USED_UP)),
        None,
        (6.0,),
    ),
    "Cloudflare: 524": Case(once(Reply(status=524, raw=b"error code: 524"))),
    "OpenAI: region not supported": Case(
        always(Reply.error(403, "unsupported_country_region_territory", "Country, region, or territory not supported")),
        "judge_unfit",
    ),
    "Gemini: location not supported, as 400": Case(
        always(google(400, "FAILED_PRECONDITION", "User location is not supported for the API use.")), "judge_unfit"
    ),
    "LM Studio: no model loaded": Case(
        always(body(400, {"error": "No models loaded. Please load a model in the developer page."})), "judge_unfit"
    ),
    "OpenRouter: no endpoints for the model": Case(
        always(body(404, {"error": {"code": 404, "message": "No endpoints found for m."}})), "judge_unfit"
    ),
    "Together: model not available, with a list": Case(
        always(
            Reply.error(400, "model_not_available", "Unable to access model m. Please visit the list of models: a, b")
        ),
        "judge_unfit",
    ),
    "usage as text": Case(enveloped(usage={"prompt_tokens": "1000", "completion_tokens": "50"})),
    "usage null": Case(enveloped(usage={"prompt_tokens": None, "completion_tokens": None})),
    "a byte order mark before the body": Case(lambda r: Reply(raw=b"\xef\xbb\xbf" + sensible(r).payload())),
    "a byte order mark before the content": Case(written(lambda text: f"\ufeff{text}")),
    "blanks before the body": Case(lambda r: Reply(raw=b"\n\n  " + sensible(r).payload())),
    "words around, German": Case(written(lambda text: f"Gern! Hier das Ergebnis:\n```json\n{text}\n```\nFertig.")),
    "words around, Chinese": Case(
        written(lambda text: f"\u597d\u7684\uff0c\u7ed3\u679c\u5982\u4e0b\uff1a{text}\u3002")
    ),
    "a fence that does not end": Case(written(lambda text: f"```json\n{text}")),
    "tildes": Case(written(lambda text: f"~~~json\n{text}\n~~~")),
    "a comma too many": Case(written(lambda text: text.replace("}]", "},]").replace("]}", "],}"))),
    "JSON in JSON": Case(written(json.dumps)),
    "an object around the object": Case(written(lambda text: json.dumps({"result": json.loads(text)}))),
    "a list around the object": Case(written(lambda text: f"[{text}]")),
    "single quotes": Case(written(lambda text: repr(json.loads(text))), "judge_unfit"),
    "ids as numbers": Case(verdicts(lambda row: {**row, "id": int(row["id"][1:])})),
    "ids in brackets": Case(verdicts(lambda row: {**row, "id": f"[{row['id']}]"})),
    "verdicts in capitals": Case(verdicts(lambda row: {**row, "verdict": row["verdict"].upper()})),
    "verdicts with a full stop": Case(verdicts(lambda row: {**row, "verdict": f"{row['verdict'].title()}."})),
    "verdicts in German": Case(verdicts(lambda row: {**row, "verdict": "best\u00e4tigt"}), "judge_unfit"),
    "the key twice": Case(written(lambda text: text.replace("{", '{"verdicts": [], ', 1)), "judge_unfit"),
    "NaN in it": Case(written(lambda text: text.replace("{", '{"x": NaN, ', 1)), "judge_unfit"),
    "quotes as a list": Case(verdicts(lambda row: {**row, "quote": [row["quote"]]})),
    "quote null where none is needed": Case(verdicts(lambda row: {**row, "quote": row["quote"] or None})),
    "the confidence beside": Case(verdicts(lambda row: {**row, "confidence": 0.93})),
}
"""By provider: what it does. `judge_unfit` is what the probe says; all other reasons are those of the measures."""


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


async def _outcome(built: Built) -> str | None:
    """The reason why there are no scores; None when there are."""
    try:
        await built.judge.probe()
    except JudgeError as error:
        return error.reason
    asked = interaction(1, question="How long?", answer="Within 30 days.", contexts=("Within 30 days.",))
    evaluators = build_evaluators(DEFAULT_MEASURES, EvaluatorsConfig(), AnyEmbedder({}))
    result = await evaluate_all(asked, evaluators, built.judge, time.time)
    reasons = {each.reason for each in result.evaluations if isinstance(each, Unscored)}
    assert len(reasons) <= 1
    return reasons.pop() if reasons else None


@pytest.mark.parametrize("case", PROVIDERS.values(), ids=PROVIDERS)
async def test_what_a_provider_does_ends_in_scores_or_in_its_reason(server: OpenAIServer, case: Case) -> None:
    server.script = case.script
    hours = Hours()
    async with Built(server, AnyEmbedder({}), hours, max_retries=4, deadline="10m") as built:
        assert await _outcome(built) == case.reason
    if case.waits is not None:
        assert tuple(hours.asked[: len(case.waits) or 1]) == pytest.approx(case.waits)
