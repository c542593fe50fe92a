"""What an LLM gateway records of the requests it passes on, as the instrumentations in use write it down.

`recordings` holds one function per way: from the body of a chat request to the attributes of the spans of one trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.otlp import Span, span, traces

Body = Mapping[str, Any]
Spans = list[dict[str, Any]]
"""Attributes of the spans from the root down, each the parent of the next."""

REPLY = '{"verdicts": []}'


def _openinference(body: Body) -> Spans:
    kept: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": body["model"]}
    kept |= {"input.value": json.dumps(body), "input.mime_type": "application/json", "output.value": REPLY}
    for at, message in enumerate(body["messages"]):
        kept[f"llm.input_messages.{at}.message.role"] = message["role"]
        kept[f"llm.input_messages.{at}.message.content"] = message["content"]
    return [{"http.route": "/chat/completions"}, kept]


def _openinference_last_message(body: Body) -> Spans:
    return [{"openinference.span.kind": "LLM", "input.value": body["messages"][-1]["content"], "output.value": REPLY}]


def _openinference_under_a_chain(body: Body) -> Spans:
    chain = {"openinference.span.kind": "CHAIN", "input.value": json.dumps(body), "output.value": REPLY}
    return [chain, *_openinference(body)]


def _parts(message: Mapping[str, str]) -> dict[str, Any]:
    return {"role": message["role"], "parts": [{"type": "text", "content": message["content"]}]}


def _genai(body: Body) -> Spans:
    common = {"gen_ai.operation.name": "chat", "gen_ai.request.model": body["model"]}
    sent = json.dumps([_parts(message) for message in body["messages"]])
    replied = json.dumps([_parts({"role": "assistant", "content": REPLY})])
    return [common | {"gen_ai.input.messages": sent, "gen_ai.output.messages": replied}]


def _genai_instructions_apart(body: Body) -> Spans:
    system, user = body["messages"]
    common = {"gen_ai.operation.name": "chat", "gen_ai.request.model": body["model"]}
    instructions = json.dumps(_parts(system)["parts"])
    sent = {"gen_ai.system_instructions": instructions, "gen_ai.input.messages": json.dumps([_parts(user)])}
    return [common | sent]


def _openllmetry(body: Body) -> Spans:
    kept: dict[str, Any] = {"llm.request.type": "chat", "gen_ai.request.model": body["model"]}
    for at, message in enumerate(body["messages"]):
        kept |= {f"gen_ai.prompt.{at}.role": message["role"], f"gen_ai.prompt.{at}.content": message["content"]}
    return [kept | {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": REPLY}]


def _proxy(body: Body) -> Spans:
    """Three spans: the proxy's own, the call, and the call as the provider was sent it."""
    raw = {"gen_ai.request.model": body["model"], "llm.openai.messages": str(body["messages"])}
    return [{"http.request.method": "POST"}, *_openllmetry(body), raw]


def _one_message(body: Body) -> Body:
    """For models without a system role: the gateway joins both messages."""
    joined = " ".join(message["content"] for message in body["messages"])
    return {**body, "messages": [{"role": "user", "content": joined}]}


def _langfuse(body: Body) -> Spans:
    kept = {"langfuse.observation.type": "generation", "langfuse.observation.input": json.dumps(body["messages"])}
    return [kept | {"langfuse.observation.output": REPLY}]


def _cut(spans: Spans, length: int) -> Spans:
    return [{key: v[:length] if isinstance(v, str) else v for key, v in each.items()} for each in spans]


def _silent(body: Body) -> Spans:
    """No content at all, but the server span that every web framework's instrumentation makes."""
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": body["model"]}
    return [{"http.route": "/chat/completions", "user_agent.original": "tracescore-judge/1"}, call]


RECORDINGS: dict[str, Callable[[Body], Spans]] = {
    "OpenInference": _openinference,
    "OpenInference, last message only": _openinference_last_message,
    "OpenInference under a chain": _openinference_under_a_chain,
    "OpenInference, cut": lambda body: _cut(_openinference(body), 512),
    "GenAI": _genai,
    "GenAI, instructions apart": _genai_instructions_apart,
    "GenAI, one message": lambda body: _genai(_one_message(body)),
    "OpenLLMetry": _openllmetry,
    "OpenLLMetry, cut": lambda body: _cut(_openllmetry(body), 256),
    "OpenLLMetry, one message": lambda body: _openllmetry(_one_message(body)),
    "a proxy's three spans": _proxy,
    "Langfuse": _langfuse,
    "no content": _silent,
}


def recorded(spans: Spans, trace: int, *, failed: bool = False) -> ExportTraceServiceRequest:
    """One trace of these spans, each below the one before, without a scope's name."""
    made: list[Span] = []
    for at, attributes in enumerate(spans, start=1):
        last = at == len(spans)
        one = span(at, at - 1, trace, attributes, name=f"span {at}", kind=2 if at == 1 else 3)
        one.start_time_unix_nano, one.end_time_unix_nano = 10**18 + at, 10**18 + 100 - at
        if failed and last:
            one.status.code = Status.STATUS_CODE_ERROR
        made.append(one)
    return without_scopes(traces(made))


def without_scopes(request: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """As a collector sends it on that drops the names of scopes."""
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            of_scope.ClearField("scope")
    return request
