"""Libraries that shape the reply: Instructor and Guardrails, through OpenInference."""

from __future__ import annotations

import sys

from .. import scene
from ..setups import PROMPT, Setup

SETUPS = (
    Setup(
        name="instructor-openinference",
        packages=(
            "instructor==1.17.0",
            "openai==2.54.0",
            "openinference-instrumentation-instructor==0.1.29",
            "openinference-instrumentation-openai==0.1.66",
        ),
        mode="instructor",
        turns=(PROMPT,),
        special="a response model with a field answer, got by a tool call",
    ),
    Setup(
        name="guardrails-openinference",
        packages=(
            "guardrails-ai==0.11.0",
            "openinference-instrumentation-guardrails==0.1.27",
            "openinference-instrumentation-litellm==0.1.51",
        ),
        mode="guardrails",
        turns=(PROMPT,),
        special="Guard() around litellm",
    ),
)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    content = scene.PROMPT.format(notes=scene.NOTES, question=scene.QUESTION)
    messages = [{"role": "user", "content": content}]
    if mode == "instructor":
        from openinference.instrumentation.instructor import InstructorInstrumentor
        from openinference.instrumentation.openai import OpenAIInstrumentor

        InstructorInstrumentor().instrument(tracer_provider=provider)
        OpenAIInstrumentor().instrument(tracer_provider=provider)
        import instructor
        from openai import OpenAI
        from pydantic import BaseModel

        class Reply(BaseModel):
            answer: str

        client = instructor.from_openai(OpenAI())
        print(client.chat.completions.create(model="gpt-4o-mini", response_model=Reply, messages=messages))
    else:
        from openinference.instrumentation.guardrails import GuardrailsInstrumentor
        from openinference.instrumentation.litellm import LiteLLMInstrumentor

        GuardrailsInstrumentor().instrument(tracer_provider=provider)
        LiteLLMInstrumentor().instrument(tracer_provider=provider)
        from guardrails import Guard

        print(Guard()(model="openai/gpt-4o-mini", messages=messages).validated_output)
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
