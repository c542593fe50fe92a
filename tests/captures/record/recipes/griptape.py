"""Griptape's Agent with a search tool: its own spans, and those of the OpenAI client beneath it."""

from __future__ import annotations

import sys
from dataclasses import replace

from .. import scene
from ..setups import TOOL, Setup

_GRIPTAPE = ("griptape==1.13.0", "opentelemetry-instrumentation-threading==0.66b1")
SETUPS = (
    Setup(
        name="griptape-own-spans",
        packages=_GRIPTAPE,
        mode="own",
        turns=(),
        special="OpenTelemetryObservabilityDriver: names of methods, and no text",
    ),
    Setup(
        name="griptape-openinference",
        packages=(*_GRIPTAPE, "openinference-instrumentation-openai==0.1.66"),
        mode="client",
        turns=(
            replace(
                TOOL,
                root="Agent.try_run()",
                or_root=("Agent.run()",),
                why="the nearest span around search and model calls; Agent.run(), which the user called, is as right",
            ),
        ),
        special="OpenTelemetryObservabilityDriver, and OpenInference on the OpenAI client",
    ),
)


def main(mode: str) -> None:
    from griptape.artifacts import TextArtifact
    from griptape.drivers.observability.open_telemetry import OpenTelemetryObservabilityDriver
    from griptape.drivers.prompt.openai import OpenAiChatPromptDriver
    from griptape.observability import Observability
    from griptape.structures import Agent
    from griptape.tools import BaseTool
    from griptape.utils.decorators import activity
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from schema import Literal, Schema

    driver = OpenTelemetryObservabilityDriver(
        service_name="observatory-desk", span_processor=BatchSpanProcessor(OTLPSpanExporter())
    )
    if mode == "client":
        from openinference.instrumentation.openai import OpenAIInstrumentor

        OpenAIInstrumentor().instrument(tracer_provider=driver.trace_provider)

    class Guide(BaseTool):
        @activity(config={"description": "Search the visitors' guide.", "schema": Schema({Literal("query"): str})})
        def search(self, values: dict[str, dict[str, str]]) -> TextArtifact:
            return TextArtifact(scene.search(values["query"]))

    with Observability(observability_driver=driver):
        agent = Agent(prompt_driver=OpenAiChatPromptDriver(model="gpt-4o-mini"), tools=[Guide()])
        print(agent.run(scene.QUESTION).output)


if __name__ == "__main__":
    main(sys.argv[1])
