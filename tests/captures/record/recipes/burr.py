"""Burr's OpenTelemetry bridge, with OpenInference on the OpenAI client."""

from __future__ import annotations

import sys
from dataclasses import replace

from .. import scene
from ..setups import PROMPT, Setup

SETUPS = (
    Setup(
        name="burr-bridge-openinference",
        packages=("burr[opentelemetry]==0.42.0", "openai==3.57.0", "openinference-instrumentation-openai==0.1.66"),
        turns=(
            replace(
                PROMPT,
                root="reply",
                or_root=("run",),
                why="the action around the model call; the run, of which the bridge records no text, is as right; the "
                "prompt calls the passages notes, which a reader need not take for a mark of the context",
            ),
        ),
        special="OpenTelemetryBridge names the actions, OpenInference records the model call",
    ),
)


def main(_mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    from burr.core import ApplicationBuilder, State, action
    from burr.integrations.opentelemetry import OpenTelemetryBridge
    from openai import OpenAI

    @action(reads=["question"], writes=["notes"])
    def retrieve(state: State) -> State:
        return state.update(notes=scene.NOTES)

    @action(reads=["question", "notes"], writes=["answer"])
    def reply(state: State) -> State:
        content = scene.PROMPT.format(notes=state["notes"], question=state["question"])
        messages = [{"role": "user", "content": content}]
        said = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=messages)
        return state.update(answer=said.choices[0].message.content)

    app = (
        ApplicationBuilder()
        .with_actions(retrieve, reply)
        .with_transitions(("retrieve", "reply"))
        .with_entrypoint("retrieve")
        .with_state(question=scene.QUESTION)
        .with_hooks(OpenTelemetryBridge(tracer_name="burr"))
        .build()
    )
    *_, state = app.run(halt_after=["reply"])
    print(state["answer"])
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
