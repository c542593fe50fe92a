"""Pydantic AI without Logfire: its own spans through plain OpenTelemetry, in the versions of its data format."""

from __future__ import annotations

import sys

from .. import scene
from ..setups import LATER, TOOL, Setup

_NEW = ("pydantic-ai-slim[openai]==2.68.0",)
SETUPS = (
    Setup(
        name="pydantic-ai-otel",
        packages=_NEW,
        mode="plain",
        turns=(TOOL, LATER),
        special="Agent.instrument_all(), a search tool, two turns",
    ),
    Setup(
        name="pydantic-ai-output-type",
        packages=_NEW,
        mode="structured",
        turns=(TOOL,),
        special="output_type is a model with a field answer: the final result is a tool call",
    ),
    Setup(
        name="pydantic-ai-openinference",
        packages=(*_NEW, "openinference-instrumentation-pydantic-ai==0.1.30"),
        mode="openinference",
        turns=(TOOL,),
        special="OpenInferenceSpanProcessor adds its attributes to Pydantic AI's own spans; streamed",
    ),
)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    if mode == "openinference":
        from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor

        # Before the exporter, as the README says: it changes spans when they end.
        provider._active_span_processor._span_processors = (
            OpenInferenceSpanProcessor(),
            *provider._active_span_processor._span_processors,
        )
    from pydantic import BaseModel
    from pydantic_ai import Agent

    class Output(BaseModel):
        answer: str

    Agent.instrument_all()
    kind = {"output_type": Output} if mode == "structured" else {}
    agent = Agent("openai-chat:gpt-4o-mini", name="clerk", instructions=scene.SYSTEM, **kind)

    @agent.tool_plain
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    if mode == "openinference":
        print(agent.run_stream_sync(scene.QUESTION).get_output())
    else:
        first = agent.run_sync(scene.QUESTION)
        print(first.output)
        if mode == "plain":
            print(agent.run_sync(scene.FOLLOW_UP, message_history=first.all_messages()).output)
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
