"""Strands Agents' own spans in the newer semantic conventions, and a swarm of two agents."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from .. import scene
from ..setups import TOOL, Setup

_PACKAGES = ("strands-agents[openai,otel]==1.62.0",)
SETUPS = (
    Setup(
        name="strands-latest-semconv",
        packages=_PACKAGES,
        mode="agent",
        env={"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
        turns=(TOOL,),
        switches="none needed; OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental changes the form",
        special="Agent with a search tool, streamed; one event gen_ai.client.inference.operation.details a call",
    ),
    Setup(
        name="strands-swarm",
        packages=_PACKAGES,
        mode="swarm",
        turns=(replace(TOOL, contexts=None, passages=(), state="no_contexts"),),
        special="Swarm: triage answers after its hand-off; its user message is a scaffold around the task",
    ),
)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel
    from strands.multiagent import Swarm

    @tool
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    model = OpenAIModel(client_args={"base_url": os.environ["OPENAI_BASE_URL"]}, model_id="gpt-4o-mini")
    clerk = Agent(name="clerk", model=model, tools=[search_guide], system_prompt=scene.SYSTEM, callback_handler=None)
    if mode == "agent":
        print(clerk(scene.QUESTION))
    else:
        triage = Agent(name="triage", model=model, system_prompt="Hand off to the clerk.", callback_handler=None)
        print(Swarm([triage, clerk], entry_point=triage)(scene.QUESTION).status)
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
