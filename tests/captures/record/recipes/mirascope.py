"""Mirascope 2: traced functions, and a model call that its own instrumentation records."""

from __future__ import annotations

import sys
from dataclasses import replace

from .. import scene
from ..setups import LISTED, Setup

SETUPS = (
    Setup(
        name="mirascope-ops",
        packages=(
            "mirascope[openai,ops]==2.8.2",
            "anthropic==2.14.0",
            "google-genai==3.6.1",
            "opentelemetry-instrumentation-anthropic==0.62.4",
            "opentelemetry-instrumentation-google-genai==0.7b2",
            "opentelemetry-instrumentation-openai-v2==2.3b0",
        ),
        turns=(replace(LISTED, root="ask"),),
        special="ops.trace around ask and retrieve, ops.instrument_llm; its ops want the clients' instrumentations",
    ),
)


def main(_mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    from mirascope import llm, ops

    ops.configure(tracer_provider=provider)
    ops.instrument_llm()

    @ops.trace
    def retrieve(query: str) -> list[str]:
        return list(scene.PASSAGES) if query else []

    @ops.trace
    def ask(question: str) -> str:
        retrieve(question)
        prompt = scene.PROMPT.format(notes=scene.NOTES, question=question)
        return str(llm.Model("openai/gpt-4o-mini").call(prompt).text())

    print(ask(scene.QUESTION))
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
