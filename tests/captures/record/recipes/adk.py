"""Google's ADK: its own spans with and without the settings that record content, and OpenInference."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from .. import scene
from ..setups import SILENT, TOOL, Setup

_BASE = ("google-adk==2.13.0",)
_CAPTURE = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
_SPAN = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}
_OPT_IN = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}


def _text(env: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in env.items())


_ROOTS = {"root": "invoke_agent clerk", "or_root": ("invocation",)}
"""ADK 1 puts a span without GenAI attributes around the agent's."""
_EITHER_ROOT = (
    "the agent's span carries the agent's name and is what a user opens; ADK's own invocation span around it says no "
    "more than that there was a run, and scores on it would be found as well"
)
SETUPS = (
    Setup(
        name="adk1-own",
        packages=("google-adk==1.18.0",),
        mode="own",
        env={"ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "true"},
        turns=(replace(TOOL, **_ROOTS, why=_EITHER_ROOT),),
        switches="ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true",
        special="ADK 1: LlmAgent with a search tool, requests and replies as JSON in attributes of its own",
    ),
    Setup(
        name="adk1-nocontent",
        packages=("google-adk==1.18.0",),
        mode="own",
        env={"ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"},
        turns=(replace(SILENT, **_ROOTS, why=_EITHER_ROOT),),
        switches="ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=false",
        special="as adk1-own, without the switch",
    ),
    Setup(
        name="adk-openinference",
        packages=(*_BASE, "openinference-instrumentation-google-adk==1.0.5"),
        mode="openinference",
        turns=(TOOL,),
        special="LlmAgent with a search tool",
    ),
    Setup(
        name="adk-opt-in-span",
        packages=_BASE,
        mode="own",
        env={**_OPT_IN, **_SPAN},
        turns=(TOOL,),
        switches=_text({**_OPT_IN, **_SPAN}),
        special="LlmAgent with a search tool, ADK's own spans",
    ),
    Setup(
        name="adk-span-alone",
        packages=_BASE,
        mode="own",
        env=_SPAN,
        turns=(TOOL,),
        switches=_text(_SPAN),
        special="LlmAgent with a search tool, ADK's own spans",
    ),
    Setup(
        name="adk-true-with-logs",
        packages=_BASE,
        mode="own-logs",
        env=_CAPTURE,
        turns=(TOOL,),
        switches=f"{_text(_CAPTURE)} and a log exporter",
        special="LlmAgent with a search tool, ADK's own spans and log events",
    ),
    Setup(
        name="adk-nocontent",
        packages=_BASE,
        mode="own",
        env={"ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"},
        turns=(SILENT,),
        switches="ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=false",
        special="LlmAgent with a search tool, ADK's own spans",
    ),
)


async def _ask() -> None:
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    clerk = LlmAgent(name="clerk", model="gemini-2.5-flash", instruction=scene.SYSTEM, tools=[search_guide])
    runner = InMemoryRunner(agent=clerk, app_name="desk")
    session = await runner.session_service.create_session(app_name="desk", user_id="u1", session_id="s1")
    asked = types.Content(role="user", parts=[types.Part(text=scene.QUESTION)])
    async for event in runner.run_async(user_id="u1", session_id=session.id, new_message=asked):
        print(event.content)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    logs = telemetry.logger_provider() if mode.endswith("logs") else None
    if mode == "openinference":
        from openinference.instrumentation.google_adk import GoogleADKInstrumentor

        GoogleADKInstrumentor().instrument(tracer_provider=provider)
    asyncio.run(_ask())
    provider.force_flush()
    if logs:
        logs.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
