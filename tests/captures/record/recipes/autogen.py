"""AutoGen AgentChat: a team of two with a hand-off, by its own spans alone and with the OpenAI client instrumented."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from .. import scene
from ..setups import SILENT, TOOL, Setup

_BASE = ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5")
SETUPS = (
    Setup(
        name="autogen-swarm-openinference",
        packages=(*_BASE, "openinference-instrumentation-autogen-agentchat==0.1.22"),
        mode="openinference",
        turns=(replace(TOOL, root="Swarm.run_stream"),),
        special="Swarm: triage hands off to a clerk with a search tool; the library's own spans lie between",
    ),
    Setup(
        name="autogen-own-spans",
        packages=_BASE,
        mode="own",
        turns=(replace(SILENT, root="invoke_agent clerk"),),
        switches="none that records content: instrument AgentChat or the model client",
        special="the library's own spans alone: the runtime's hold the task as a message",
    ),
    Setup(
        name="autogen-own-and-openai-v2",
        packages=(
            *_BASE,
            "openai==2.54.0",
            "opentelemetry-instrumentation-openai-v2==2.4b0",
            "opentelemetry-util-genai==0.4b0",
        ),
        mode="openai-v2",
        env={
            "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        },
        turns=(
            replace(
                TOOL,
                root="invoke_agent clerk",
                why="each agent's work is a trace of its own: the clerk was sent the visitor's question, it is read; "
                "triage only handed over, which nobody would call an answer; the framework's 'Transferred to clerk' "
                "is a user message for the model, but no user said it",
            ),
        ),
        switches="OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
        special="the library's own spans around those of the instrumented OpenAI client",
    ),
)


async def _ask() -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
    from autogen_agentchat.teams import Swarm
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    async def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    model = OpenAIChatCompletionClient(model="gpt-4o-mini")
    clerk = AssistantAgent("clerk", model, tools=[search_guide], system_message=scene.SYSTEM, reflect_on_tool_use=True)
    triage = AssistantAgent("triage", model, handoffs=["clerk"], system_message="Hand off to the clerk.")
    done = TextMentionTermination("14 thalers.", sources=["clerk"]) | MaxMessageTermination(12)
    print((await Swarm([triage, clerk], termination_condition=done).run(task=scene.QUESTION)).messages[-1])
    await model.close()


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    if mode == "openinference":
        from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

        AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)
    elif mode == "openai-v2":
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

        OpenAIInstrumentor().instrument(tracer_provider=provider)
    asyncio.run(_ask())
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
