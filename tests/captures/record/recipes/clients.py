"""Model clients without a framework: a prompt with passages, whole and streamed, and a request that is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace

from .. import scene
from ..setups import FAILED, PROMPT, SILENT, Setup, Turn

_OPT_IN = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
_SPAN = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}
_TRUE = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
_STREAMED = replace(PROMPT, key="streamed")
_ALL = (PROMPT, _STREAMED, FAILED)
_NOTHING = tuple(
    replace(SILENT, key=key, state=state)
    for key, state in (("ask", SILENT.state), ("streamed", SILENT.state), ("failing", "app_error"))
)


def _setup(
    name: str,
    packages: tuple[str, ...],
    turns: tuple[Turn, ...] = _ALL,
    *,
    env: dict[str, str] | None = None,
    mode: str = "",
    special: str = "",
) -> Setup:
    env = env or {}
    switches = " ".join(f"{key}={value}" for key, value in env.items()) or "none needed"
    text = "a prompt with passages, the same streamed, a refused request"
    return Setup(name, packages, turns, mode or name, env, switches, f"{text}; {special}" if special else text)


_BESIDE = "the client's own spans (com.anthropic.sdk.python, never with content) are traces of their own"


def _rooted(turns: tuple[Turn, ...], root: str) -> tuple[Turn, ...]:
    return tuple(replace(turn, root=root) for turn in turns)


_ANTHROPIC, _GOOGLE = "anthropic==2.14.0", "google-genai==3.6.1"
_GOOGLE_OTEL = ("google-genai==2.34.0", "opentelemetry-instrumentation-google-genai==1.3b0")
_V2 = ("openai==2.54.0", "opentelemetry-instrumentation-openai-v2==2.4b0", "opentelemetry-util-genai==0.4b0")
_V2_OLD = (
    "openai==2.54.0",
    "opentelemetry-instrumentation-openai-v2==2.1b0",
    "opentelemetry-sdk==1.31.1",
    "opentelemetry-exporter-otlp-proto-http==1.31.1",
)
_GOOGLE_OLD = (
    "google-genai==1.46.0",
    "opentelemetry-instrumentation-google-genai==0.4b0",
    "opentelemetry-sdk==1.37.0",
    "opentelemetry-exporter-otlp-proto-http==1.37.0",
)
_PIECES = replace(
    _STREAMED, in_pieces=True, why="each chunk is a message of its own: their texts joined are the answer"
)
_OLD = (PROMPT, _PIECES, FAILED)
SETUPS = (
    _setup("google-genai-otel-0.4-switch-alone", _GOOGLE_OLD, _NOTHING, env=_SPAN, mode="google-genai-otel"),
    _setup(
        "google-genai-otel-0.4-opt-in",
        _GOOGLE_OLD,
        (*_OLD[:2], replace(FAILED, question=None)),
        env={**_OPT_IN, **_SPAN},
        mode="google-genai-otel",
    ),
    _setup("google-genai-otel-0.4-true-with-logs", _GOOGLE_OLD, _OLD, env=_TRUE, mode="google-genai-otel-logs"),
    _setup(
        "openai-v2-2.1-true-with-logs", _V2_OLD, _ALL, env=_TRUE, mode="openai-v2-logs", special="with a log exporter"
    ),
    _setup("openai-v2-2.1-true-no-logs", _V2_OLD, _NOTHING, env=_TRUE, mode="openai-v2"),
    _setup("anthropic-openinference", (_ANTHROPIC, "openinference-instrumentation-anthropic==3.1.0")),
    _setup(
        "anthropic-openllmetry",
        (_ANTHROPIC, "opentelemetry-instrumentation-anthropic==0.62.4"),
        _rooted(_ALL, "anthropic.chat"),
        special=_BESIDE,
    ),
    _setup(
        "anthropic-openllmetry-nocontent",
        (_ANTHROPIC, "opentelemetry-instrumentation-anthropic==0.62.4"),
        _rooted(_NOTHING, "anthropic.chat"),
        env={"TRACELOOP_TRACE_CONTENT": "false"},
        mode="anthropic-openllmetry",
        special=_BESIDE,
    ),
    _setup(
        "anthropic-genai",
        (_ANTHROPIC, "opentelemetry-instrumentation-genai-anthropic==1.3b0"),
        env={**_OPT_IN, **_SPAN},
    ),
    _setup("google-genai-openinference", (_GOOGLE, "openinference-instrumentation-google-genai==1.4.14")),
    _setup("google-genai-otel", _GOOGLE_OTEL, env={**_OPT_IN, **_SPAN}),
    _setup("google-genai-otel-switch-alone", _GOOGLE_OTEL, _ALL, env=_SPAN, mode="google-genai-otel"),
    _setup("ollama-openllmetry", ("ollama==0.6.3", "opentelemetry-instrumentation-ollama==0.62.4")),
    _setup("openai-v2-switch-alone", _V2, _NOTHING, env=_SPAN, mode="openai-v2"),
    _setup("openai-v2-true-no-logs", _V2, _NOTHING, env=_TRUE, mode="openai-v2"),
    _setup("openai-v2-true-with-logs", _V2, _ALL, env=_TRUE, mode="openai-v2-logs", special="with a log exporter"),
    _setup("openai-v2-opt-in", _V2, _ALL, env={**_OPT_IN, **_SPAN}, mode="openai-v2"),
    _setup(
        "genai-openai-nocontent",
        ("openai==3.57.0", "opentelemetry-instrumentation-genai-openai==1.3b0"),
        _NOTHING,
        mode="genai-openai",
    ),
    _setup(
        "genai-openai-switch-alone",
        ("openai==3.57.0", "opentelemetry-instrumentation-genai-openai==1.3b0"),
        env=_SPAN,
        mode="genai-openai",
    ),
)


def _prompt(question: str) -> str:
    return scene.PROMPT.format(notes=scene.NOTES, question=question)


def _anthropic(question: str, *, stream: bool) -> None:
    from anthropic import Anthropic

    sent = {"model": "claude-sonnet-4-5", "max_tokens": 100, "system": scene.SYSTEM}
    messages = [{"role": "user", "content": _prompt(question)}]
    made = Anthropic(max_retries=0).messages.create(**sent, messages=messages, stream=stream)
    for _ in made if stream else ():
        pass


def _google(question: str, *, stream: bool) -> None:
    from google import genai

    client = genai.Client(http_options={"base_url": os.environ["MODEL_URL"]})
    models = client.models
    sent = {"model": "gemini-2.5-flash", "contents": _prompt(question), "config": {"system_instruction": scene.SYSTEM}}
    made = models.generate_content_stream(**sent) if stream else models.generate_content(**sent)
    for _ in made if stream else ():
        pass


def _ollama(question: str, *, stream: bool) -> None:
    import ollama

    made = ollama.chat("llama3.2", messages=[{"role": "user", "content": _prompt(question)}], stream=stream)
    for _ in made if stream else ():
        pass


def _openai(question: str, *, stream: bool) -> None:
    from openai import OpenAI

    messages = [{"role": "system", "content": scene.SYSTEM}, {"role": "user", "content": _prompt(question)}]
    made = OpenAI(max_retries=0).chat.completions.create(model="gpt-4o-mini", messages=messages, stream=stream)
    for _ in made if stream else ():
        pass


def _instrument(mode: str, provider: object, logs: object) -> Callable[..., None]:
    if mode.startswith("anthropic"):
        if mode.endswith("openinference"):
            from openinference.instrumentation.anthropic import AnthropicInstrumentor as Instrumentor
        elif mode.endswith("openllmetry"):
            from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor as Instrumentor
        else:
            from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor as Instrumentor
        ask = _anthropic
    elif mode.startswith("google"):
        if mode.endswith("openinference"):
            from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor as Instrumentor
        else:
            from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor as Instrumentor
        ask = _google
    elif mode.startswith("ollama"):
        from opentelemetry.instrumentation.ollama import OllamaInstrumentor as Instrumentor

        ask = _ollama
    elif mode.startswith("openai-v2"):
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor as Instrumentor

        ask = _openai
    else:
        from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as Instrumentor

        ask = _openai
    Instrumentor().instrument(tracer_provider=provider, **({"logger_provider": logs} if logs else {}))
    return ask


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    logs = telemetry.logger_provider() if mode.endswith("logs") else None
    ask = _instrument(mode, provider, logs)
    ask(scene.QUESTION, stream=False)
    ask(scene.QUESTION, stream=True)
    try:
        ask(scene.FAILING, stream=False)
    except Exception as refused:
        print(refused)
    provider.force_flush()
    if logs:
        logs.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
