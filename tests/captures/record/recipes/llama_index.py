"""LlamaIndex workflows: an agent, a multi-agent workflow, and a RAG workflow of one's own steps."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from .. import scene
from ..setups import LISTED, TOOL, Setup

_BASE = ("llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3", "llama-index-embeddings-openai==0.7.0")
_OPENINFERENCE = (*_BASE, "openinference-instrumentation-llama-index==4.6.1")
_OPENLLMETRY = (*_BASE, "opentelemetry-instrumentation-llamaindex==0.62.4")
SETUPS = (
    Setup(
        name="llamaindex-agent-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-agent",
        turns=(TOOL,),
        special="FunctionAgent with a search tool (a workflow; the model's replies are streamed)",
    ),
    Setup(
        name="llamaindex-multi-agent-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-team",
        turns=(TOOL,),
        special="AgentWorkflow: triage hands off to a clerk with a search tool",
    ),
    Setup(
        name="llamaindex-workflow-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-workflow",
        turns=(replace(LISTED, root="Guide.run"),),
        special="a workflow of one's own: steps retrieve and generate hand events to each other",
    ),
    Setup(
        name="llamaindex-workflow-openllmetry",
        packages=_OPENLLMETRY,
        mode="openllmetry-workflow",
        turns=(
            replace(
                LISTED,
                root="Guide.workflow",
                or_question=(None,),
                why="the question stands as the retriever's query alone; the workflow's answer under result",
            ),
        ),
        special="a workflow of one's own: steps retrieve and generate hand events to each other",
    ),
    Setup(
        name="llamaindex-agent-openllmetry",
        packages=_OPENLLMETRY,
        mode="openllmetry-agent",
        turns=(TOOL,),
        special="FunctionAgent with a search tool (a workflow; the model's replies are streamed)",
    ),
)


def _search_guide(query: str) -> str:
    """Search the visitors' guide."""
    return scene.search(query)


async def _agent(mode: str) -> None:
    from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai import OpenAI

    model = OpenAI(model="gpt-4o-mini")
    tools = [FunctionTool.from_defaults(_search_guide, name="search_guide")]
    clerk = FunctionAgent(
        name="clerk", description="Knows the guide", tools=tools, llm=model, system_prompt=scene.SYSTEM
    )
    if mode.endswith("agent"):
        print(await clerk.run(scene.QUESTION))
        return
    triage = FunctionAgent(
        name="triage", description="Hands off", tools=[], llm=model, system_prompt="Hand off.", can_handoff_to=["clerk"]
    )
    print(await AgentWorkflow(agents=[triage, clerk], root_agent="triage").run(scene.QUESTION))


async def _workflow() -> None:
    from llama_index.core import Document, Settings, SummaryIndex
    from llama_index.core.schema import NodeWithScore
    from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
    from llama_index.embeddings.openai import OpenAIEmbedding
    from llama_index.llms.openai import OpenAI

    Settings.embed_model, Settings.llm = OpenAIEmbedding(), OpenAI(model="gpt-4o-mini")
    index = SummaryIndex.from_documents([Document(text=text) for text in scene.PASSAGES])

    class Retrieved(Event):
        question: str
        nodes: list[NodeWithScore]

    class Guide(Workflow):
        @step
        async def retrieve(self, ev: StartEvent) -> Retrieved:
            return Retrieved(question=ev.question, nodes=await index.as_retriever().aretrieve(ev.question))

        @step
        async def generate(self, ev: Retrieved) -> StopEvent:
            notes = "\n".join(node.text for node in ev.nodes)
            reply = await Settings.llm.acomplete(scene.PROMPT.format(notes=notes, question=ev.question))
            return StopEvent(result=str(reply))

    print(await Guide().run(question=scene.QUESTION))


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    if mode.startswith("openinference"):
        from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
    else:
        from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    asyncio.run(_workflow() if mode.endswith("workflow") else _agent(mode))
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
