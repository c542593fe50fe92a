"""Microsoft's Agent Framework, the successor of AutoGen and Semantic Kernel: its own spans."""

from __future__ import annotations

import asyncio
import sys

from .. import scene
from ..setups import SILENT, TOOL, Setup

_PACKAGES = ("agent-framework-core==1.23.0", "agent-framework-openai==1.17.0")
SETUPS = (
    Setup(
        name="agent-framework",
        packages=_PACKAGES,
        mode="content",
        env={"ENABLE_INSTRUMENTATION": "true", "ENABLE_SENSITIVE_DATA": "true"},
        turns=(TOOL,),
        switches="ENABLE_INSTRUMENTATION=true ENABLE_SENSITIVE_DATA=true",
        special="an agent with a search tool, streamed",
    ),
    Setup(
        name="agent-framework-nocontent",
        packages=_PACKAGES,
        mode="quiet",
        env={"ENABLE_INSTRUMENTATION": "true"},
        turns=(SILENT,),
        switches="ENABLE_INSTRUMENTATION=true",
        special="as agent-framework, without the second switch",
    ),
)


async def _ask() -> None:
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient

    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    agent = Agent(client, name="clerk", instructions=scene.SYSTEM, tools=[search_guide])
    async for _ in agent.run(scene.QUESTION, stream=True):
        pass


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    from agent_framework.observability import enable_instrumentation

    enable_instrumentation(enable_sensitive_data=mode == "content")
    asyncio.run(_ask())
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
