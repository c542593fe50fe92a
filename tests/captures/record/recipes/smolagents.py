"""smolagents: an agent that writes code, and one that manages another, through OpenInference."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from .. import scene
from ..setups import TOOL, Setup

_PACKAGES = ("smolagents==1.26.0", "openai==3.57.0", "openinference-instrumentation-smolagents==0.1.43")
SETUPS = (
    Setup(
        name="smolagents-code",
        packages=_PACKAGES,
        mode="code",
        turns=(TOOL,),
        special="CodeAgent: the model writes code that calls the search tool and final_answer",
    ),
    Setup(
        name="smolagents-stream",
        packages=_PACKAGES,
        mode="stream",
        turns=(
            replace(
                TOOL,
                why="the task is the app's own, the same for all visitors, and a score of it would say nothing of any "
                "of them; what a visitor asked is the argument that is called question",
            ),
        ),
        special="ToolCallingAgent with stream_outputs, the question in additional_args under a general task",
    ),
)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor

    SmolagentsInstrumentor().instrument(tracer_provider=provider)
    from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool

    @tool
    def search_guide(query: str) -> str:
        """Search the visitors' guide.

        Args:
            query: What to look for.
        """
        return scene.search(query)

    model = OpenAIServerModel(model_id="gpt-4o-mini", api_base=os.environ["OPENAI_BASE_URL"], api_key="none")
    code = mode == "code"
    kind = CodeAgent if code else ToolCallingAgent
    agent = kind(tools=[search_guide], model=model, verbosity_level=0, **({} if code else {"stream_outputs": True}))
    # The library's own prompt is long: a short one goes into the recording.
    form = "Write code between <code> and </code>." if code else "End with final_answer."
    agent.prompt_templates["system_prompt"] = f"{scene.SYSTEM} {form}"
    if code:
        print(agent.run(scene.QUESTION))
    else:
        print(agent.run("Answer the visitor's question.", additional_args={"question": scene.QUESTION}))
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
