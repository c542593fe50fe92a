"""CrewAI: a flow without an agent of its own, and a crew inside a flow, through OpenInference and OpenLLMetry."""

from __future__ import annotations

import os
import sys

from .. import scene
from ..setups import PROMPT, TOOL, Setup

_BASE = ("crewai==1.15.30", "openai==2.54.0")
_OPENINFERENCE = (
    *_BASE,
    "openinference-instrumentation-crewai==1.1.21",
    "openinference-instrumentation-openai==0.1.66",
)
SETUPS = (
    Setup(
        name="crewai-flow-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-flow",
        turns=(PROMPT,),
        special="a Flow: start retrieves, listen asks the model by LLM.call; kickoff(inputs={'question': ...})",
    ),
    Setup(
        name="crewai-flow-crew-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-crew",
        turns=(TOOL,),
        special="a Flow that kicks off a crew with a search tool",
    ),
    Setup(
        name="crewai-two-tasks-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-tasks",
        turns=(TOOL,),
        special="a crew of two: the writer's task has the output of the first one's as context",
    ),
)


def _flow(mode: str) -> None:
    from crewai import LLM, Agent, Crew, Task
    from crewai.flow.flow import Flow, listen, start
    from crewai.tools import tool

    model = LLM(model="openai/gpt-4o-mini", base_url=os.environ["OPENAI_BASE_URL"], api_key="none")

    @tool("search_guide")
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    def crew(*, writer: bool = False) -> Crew:
        clerk = Agent(
            role="Clerk", goal="Answer visitors", backstory="Knows the guide.", llm=model, tools=[search_guide]
        )
        first = Task(description="Answer: {question}", expected_output="One sentence.", agent=clerk)
        if not writer:
            return Crew(agents=[clerk], tasks=[first])
        author = Agent(role="Writer", goal="Write well", backstory="Writes short.", llm=model)
        second = Task(
            description="Write the answer to: {question}",
            expected_output="One sentence.",
            agent=author,
            context=[first],
        )
        return Crew(agents=[clerk, author], tasks=[first, second])

    if mode.endswith("tasks"):
        print(crew(writer=True).kickoff(inputs={"question": scene.QUESTION}).raw)
        return

    class Guide(Flow):
        @start()
        def retrieve(self) -> list[str]:
            return list(scene.PASSAGES)

        @listen(retrieve)
        def answer(self, passages: list[str]) -> str:
            question = self.state["question"]
            if mode.endswith("crew"):
                return crew().kickoff(inputs={"question": question}).raw
            notes = "\n".join(f"- {passage}" for passage in passages)
            return model.call([{"role": "user", "content": scene.PROMPT.format(notes=notes, question=question)}])

    print(Guide().kickoff(inputs={"question": scene.QUESTION}))


def main(mode: str) -> None:
    os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false")
    from record import telemetry

    provider = telemetry.tracer_provider()
    from openinference.instrumentation.crewai import CrewAIInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider, skip_dep_check=True)
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    _flow(mode)
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
