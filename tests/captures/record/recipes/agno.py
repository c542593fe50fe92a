"""Agno: an agent with a search tool (streamed) and a team, through OpenInference and OpenLIT."""

from __future__ import annotations

import sys

from .. import scene
from ..setups import TOOL, Setup

_BASE = ("agno==3.1.10", "openai==3.57.0")
_OPENINFERENCE = (*_BASE, "openinference-instrumentation-agno==1.0.15")
SETUPS = (
    Setup(
        name="agno-agent-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-agent",
        turns=(TOOL,),
        special="Agent with a search tool, streamed",
    ),
    Setup(
        name="agno-team-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-team",
        turns=(TOOL,),
        special="Team whose leader delegates to a member with a search tool",
    ),
    Setup(
        name="agno-agent-openllmetry",
        packages=(*_BASE, "opentelemetry-instrumentation-agno==0.62.4"),
        mode="openllmetry-agent",
        turns=(TOOL,),
        special="Agent with a search tool",
    ),
)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    if mode.startswith("openinference"):
        from openinference.instrumentation.agno import AgnoInstrumentor
    else:
        from opentelemetry.instrumentation.agno import AgnoInstrumentor
    AgnoInstrumentor().instrument(tracer_provider=provider)
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    from agno.team import Team

    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    def model() -> OpenAIChat:
        return OpenAIChat(id="gpt-4o-mini")

    clerk = Agent(name="Clerk", model=model(), tools=[search_guide], instructions=scene.SYSTEM, telemetry=False)
    if mode.endswith("team"):
        team = Team(name="Desk", members=[clerk], model=model(), instructions="Delegate to the clerk.", telemetry=False)
        print(team.run(scene.QUESTION).content)
    elif mode.startswith("openinference"):
        print("".join(str(event.content or "") for event in clerk.run(scene.QUESTION, stream=True)))
    else:
        print(clerk.run(scene.QUESTION).content)
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
