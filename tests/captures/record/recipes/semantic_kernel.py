"""Semantic Kernel's own spans: an agent with a search plugin, and a prompt function with passages."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from .. import scene
from ..setups import PROMPT, SILENT, TOOL, Setup

_PACKAGES = ("semantic-kernel==1.45.0",)
_ON = {
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS": "true",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE": "true",
}
_QUIET = {"SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS": "true"}
SETUPS = (
    Setup(
        name="semantic-kernel-agent",
        packages=_PACKAGES,
        mode="agent",
        env=_ON,
        turns=(TOOL,),
        switches=" ".join(f"{key}={value}" for key, value in _ON.items()),
        special="ChatCompletionAgent with a search plugin; content in log records and span attributes",
    ),
    Setup(
        name="semantic-kernel-prompt",
        packages=_PACKAGES,
        mode="prompt",
        env=_ON,
        turns=(PROMPT,),
        switches=" ".join(f"{key}={value}" for key, value in _ON.items()),
        special="invoke_prompt with passages in the template's arguments",
    ),
    Setup(
        name="semantic-kernel-no-logs",
        packages=_PACKAGES,
        mode="no-logs",
        env=_ON,
        turns=(
            replace(
                TOOL,
                question=None,
                state="content_not_captured",
                or_state=("no_question",),
                why="what the agent said and found is on its spans, what it was asked in log records alone: the user "
                "wants to hear of the missing handler, as content_not_captured says; no_question is as true",
            ),
        ),
        switches=" ".join(f"{key}={value}" for key, value in _ON.items()),
        special="as semantic-kernel-agent, without a handler for its log records: the question stands in them alone",
    ),
    Setup(
        name="semantic-kernel-nocontent",
        packages=_PACKAGES,
        mode="agent",
        env=_QUIET,
        turns=(SILENT,),
        switches=" ".join(f"{key}={value}" for key, value in _QUIET.items()),
        special="as semantic-kernel-agent, without the second switch",
    ),
)


async def _ask(mode: str) -> None:
    from semantic_kernel import Kernel
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
    from semantic_kernel.functions import KernelArguments, kernel_function

    class Guide:
        @kernel_function(name="search", description="Search the visitors' guide.")
        def search(self, query: str) -> str:
            return scene.search(query)

    service = OpenAIChatCompletion(ai_model_id="gpt-4o-mini")
    if mode != "prompt":
        agent = ChatCompletionAgent(service=service, name="Clerk", instructions=scene.SYSTEM, plugins=[Guide()])
        print(await agent.get_response(messages=scene.QUESTION))
        return
    kernel = Kernel()
    kernel.add_service(service)
    arguments = KernelArguments(notes=scene.NOTES, question=scene.QUESTION)
    print(
        await kernel.invoke_prompt(
            scene.PROMPT.format(notes="{{$notes}}", question="{{$question}}"), arguments=arguments
        )
    )


def main(mode: str) -> None:
    import logging

    from record import telemetry

    provider, logs = telemetry.tracer_provider(), telemetry.logger_provider()
    if mode != "no-logs":
        from opentelemetry.sdk._logs import LoggingHandler

        # Semantic Kernel's README: its events are records of the logging module, which a handler hands on.
        logging.getLogger("semantic_kernel").addHandler(LoggingHandler(logger_provider=logs))
        logging.getLogger("semantic_kernel").setLevel(logging.INFO)
    asyncio.run(_ask(mode))
    provider.force_flush()
    logs.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
