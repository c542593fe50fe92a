"""Haystack 3: its Agent with a search tool and a RAG pipeline, by its own tracer and through OpenInference."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from .. import scene
from ..setups import LISTED, SILENT, TOOL, Setup

_OWN = ("haystack-ai==3.4.1", "opentelemetry-haystack==2.0.0")
_OPENINFERENCE = ("haystack-ai==3.4.1", "openinference-instrumentation-haystack==0.1.46")
_CONTENT = {"HAYSTACK_CONTENT_TRACING_ENABLED": "true"}
SETUPS = (
    Setup(
        name="haystack3-agent-otel",
        packages=_OWN,
        mode="own-agent",
        env=_CONTENT,
        turns=(TOOL,),
        switches="HAYSTACK_CONTENT_TRACING_ENABLED=true",
        special="pipeline with an Agent that has a search tool, opentelemetry-haystack",
    ),
    Setup(
        name="haystack3-agent-nocontent",
        packages=_OWN,
        mode="own-agent",
        turns=(
            replace(SILENT, question=scene.QUESTION, why="the pipeline's input is recorded without the switch too"),
        ),
        switches="HAYSTACK_CONTENT_TRACING_ENABLED unset",
        special="as haystack3-agent-otel, without the switch",
    ),
    Setup(
        name="haystack3-agent-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-agent",
        turns=(TOOL,),
        special="pipeline with an Agent that has a search tool",
    ),
    Setup(
        name="haystack3-rag-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-rag",
        turns=(LISTED,),
        special="pipeline of retriever, prompt builder and chat generator",
    ),
    Setup(
        name="haystack3-rag-otel",
        packages=_OWN,
        mode="own-rag",
        env=_CONTENT,
        turns=(LISTED,),
        switches="HAYSTACK_CONTENT_TRACING_ENABLED=true",
        special="pipeline of retriever, prompt builder and chat generator, opentelemetry-haystack",
    ),
)


def _agent() -> None:
    from haystack import Pipeline
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import tool

    @tool
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    model = OpenAIChatGenerator(model="gpt-4o-mini", api_base_url=os.environ["OPENAI_BASE_URL"])
    agent = Agent(chat_generator=model, tools=[search_guide], system_prompt=scene.SYSTEM)
    pipeline = Pipeline()
    pipeline.add_component("agent", agent)
    asked = {"agent": {"messages": [ChatMessage.from_user(scene.QUESTION)]}}
    print(pipeline.run(asked)["agent"]["messages"][-1].text)


def _rag() -> None:
    from haystack import Document, Pipeline
    from haystack.components.builders import ChatPromptBuilder
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in scene.PASSAGES])
    notes = "{% for document in documents %}{{ document.content }}\n{% endfor %}"
    prompt = scene.PROMPT.format(notes=notes, question="{{ question }}")
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
    builder = ChatPromptBuilder(template=[ChatMessage.from_user(prompt)], required_variables="*")
    pipeline.add_component("prompt_builder", builder)
    model = OpenAIChatGenerator(model="gpt-4o-mini", api_base_url=os.environ["OPENAI_BASE_URL"])
    pipeline.add_component("llm", model)
    pipeline.connect("retriever.documents", "prompt_builder.documents")
    pipeline.connect("prompt_builder.prompt", "llm.messages")
    asked = {"retriever": {"query": scene.QUESTION}, "prompt_builder": {"question": scene.QUESTION}}
    print(pipeline.run(asked)["llm"]["replies"][0].text)


def main(mode: str) -> None:
    from record import telemetry

    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    provider = telemetry.tracer_provider()
    if mode.startswith("openinference"):
        from openinference.instrumentation.haystack import HaystackInstrumentor

        HaystackInstrumentor().instrument(tracer_provider=provider)
    else:
        from haystack_integrations.components.connectors.opentelemetry import OpenTelemetryConnector

        OpenTelemetryConnector()
    if mode.endswith("agent"):
        _agent()
    else:
        _rag()
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
