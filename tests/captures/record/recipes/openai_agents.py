"""The OpenAI Agents SDK: a triage agent that hands off to one with a search tool, through three instrumentations."""

from __future__ import annotations

import asyncio
import dataclasses
import sys

from .. import scene
from ..setups import FAILED, TOOL, Setup

_AGENTS = "openai-agents==0.24.0"
SETUPS = (
    Setup(
        name="openai-agents-handoff-openinference",
        packages=(_AGENTS, "openinference-instrumentation-openai-agents==2.6.0"),
        mode="openinference",
        turns=(TOOL, dataclasses.replace(FAILED, question=None)),
        special="triage hands off to a clerk with a search tool; the Responses API; a second question is refused",
    ),
    Setup(
        name="openai-agents-stream-openinference",
        packages=(_AGENTS, "openinference-instrumentation-openai-agents==2.6.0"),
        mode="openinference-stream",
        turns=(TOOL,),
        special="Runner.run_streamed with the chat completions model; one agent with a search tool",
    ),
    Setup(
        name="openai-agents-openllmetry",
        packages=(_AGENTS, "opentelemetry-instrumentation-openai-agents==0.62.4"),
        mode="openllmetry",
        turns=(TOOL,),
        special="triage hands off to a clerk with a search tool",
    ),
)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    if mode.startswith("openinference"):
        from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
    else:
        from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    from agents import Agent, Runner, function_tool, set_default_openai_api

    if mode.endswith("stream"):
        set_default_openai_api("chat_completions")

    @function_tool
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    clerk = Agent(name="Clerk", instructions=scene.SYSTEM, tools=[search_guide], model="gpt-4o-mini")
    triage = Agent(name="Triage", instructions="Hand off to the clerk.", handoffs=[clerk], model="gpt-4o-mini")

    async def ask() -> None:
        if mode.endswith("stream"):
            streamed = Runner.run_streamed(clerk, scene.QUESTION)
            async for _ in streamed.stream_events():
                pass
            return
        print((await Runner.run(triage, scene.QUESTION)).final_output)
        if mode == "openinference":
            try:
                await Runner.run(triage, scene.FAILING)
            except Exception as refused:
                print(refused)

    asyncio.run(ask())
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
