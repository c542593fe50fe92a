"""BeeAI's RequirementAgent with a search tool, through OpenInference."""

from __future__ import annotations

import asyncio
import sys

from .. import scene
from ..setups import TOOL, Setup

SETUPS = (
    Setup(
        name="beeai-agent-openinference",
        packages=("beeai-framework==0.1.85", "openinference-instrumentation-beeai==0.1.30"),
        turns=(TOOL,),
        special="RequirementAgent with a search tool; the final answer is a tool call, too",
    ),
)


def main(_mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    from openinference.instrumentation.beeai import BeeAIInstrumentor

    BeeAIInstrumentor().instrument(tracer_provider=provider)
    from beeai_framework.adapters.openai import OpenAIChatModel
    from beeai_framework.agents.requirement import RequirementAgent
    from beeai_framework.tools import tool

    @tool
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    async def run() -> None:
        model = OpenAIChatModel("gpt-4o-mini", tool_choice_support={"auto", "none"})
        agent = RequirementAgent(llm=model, tools=[search_guide], instructions=scene.SYSTEM, final_answer_as_tool=False)
        print((await agent.run(scene.QUESTION)).last_message.text)

    asyncio.run(run())
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
