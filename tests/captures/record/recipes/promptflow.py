"""Prompt flow's tracing: functions under @trace and the OpenAI client that it patches."""

from __future__ import annotations

import sys
from dataclasses import replace

from .. import scene
from ..setups import LISTED, Setup

SETUPS = (
    Setup(
        name="promptflow-trace",
        packages=("promptflow-tracing==1.18.5", "openai==3.57.0"),
        env={"PF_DISABLE_TRACING": "false"},
        turns=(replace(LISTED, root="main.<locals>.ask"),),
        switches="PF_DISABLE_TRACING=false; without it no span is made",
        special="start_trace() and @trace around ask and retrieve; attributes span_type, inputs, output",
    ),
)


def main(_mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    from promptflow.tracing import start_trace, trace

    start_trace(collection="visitors")
    from openai import OpenAI

    @trace
    def retrieve(query: str) -> list[str]:
        return list(scene.PASSAGES) if query else []

    @trace
    def ask(question: str) -> str:
        retrieve(question)
        content = scene.PROMPT.format(notes=scene.NOTES, question=question)
        messages = [{"role": "user", "content": content}]
        reply = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=messages)
        return str(reply.choices[0].message.content)

    print(ask(scene.QUESTION))
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
