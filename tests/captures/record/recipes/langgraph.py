"""LangGraph and LangChain 1: a graph with a subgraph, create_agent, a plain RAG graph without a message list."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any, TypedDict

from .. import scene
from ..setups import FAILED, LISTED, TOOL, Setup

_BASE = ("langgraph==1.2.24", "langchain==1.5.2", "langchain-openai==1.7.4")
_OPENINFERENCE = (*_BASE, "openinference-instrumentation-langchain==0.1.80")
SETUPS = (
    Setup(
        name="langgraph-subgraph-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-subgraph",
        turns=(LISTED,),
        special="state {question, documents, answer}; retrieval in a subgraph by a BaseRetriever, no message list",
    ),
    Setup(
        name="langchain-agent-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-agent",
        turns=(TOOL, FAILED),
        special="create_agent of LangChain 1, streamed; a second question is refused",
    ),
    Setup(
        name="langchain-agent-openllmetry",
        packages=(*_BASE, "opentelemetry-instrumentation-langchain==0.62.4"),
        mode="openllmetry-agent",
        turns=(replace(TOOL, root="invoke_agent"), replace(FAILED, root="invoke_agent")),
        special="create_agent of LangChain 1, streamed; a second question is refused",
    ),
    Setup(
        name="langgraph-subgraph-openllmetry",
        packages=(*_BASE, "opentelemetry-instrumentation-langchain==0.62.4"),
        mode="openllmetry-subgraph",
        turns=(LISTED,),
        special="state {question, documents, answer}; retrieval in a subgraph by a BaseRetriever, no message list",
    ),
    Setup(
        name="langgraph-no-model-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-nomodel",
        turns=(LISTED,),
        special="a graph whose answer is made without a model: state {question, documents, answer}, plain functions",
    ),
)


def _instrument(mode: str, provider: Any) -> None:
    if mode.startswith("openinference"):
        from openinference.instrumentation.langchain import LangChainInstrumentor as Instrumentor
    else:
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor as Instrumentor
    Instrumentor().instrument(tracer_provider=provider)


class State(TypedDict, total=False):
    question: str
    documents: list[Any]
    answer: str


def _graph(mode: str) -> None:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, StateGraph

    class Guide(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=text, metadata={"page": n}) for n, text in enumerate(scene.PASSAGES, 1)]

    model, guide = ChatOpenAI(model="gpt-4o-mini"), Guide()

    def retrieve(state: State) -> State:
        if mode.endswith("nomodel"):
            return {"documents": [Document(page_content=text) for text in scene.PASSAGES]}
        return {"documents": guide.invoke(state["question"])}

    def generate(state: State) -> State:
        if mode.endswith("nomodel"):
            return {"answer": scene.ANSWERS[state["question"]]}
        notes = "\n".join(document.page_content for document in state["documents"])
        prompt = scene.PROMPT.format(notes=notes, question=state["question"])
        return {"answer": model.invoke(prompt).content}

    inner = StateGraph(State)
    inner.add_node("retrieve", retrieve)
    inner.add_edge(START, "retrieve")
    inner.add_edge("retrieve", END)
    outer = StateGraph(State)
    outer.add_node("research", inner.compile())
    outer.add_node("generate", generate)
    outer.add_edge(START, "research")
    outer.add_edge("research", "generate")
    outer.add_edge("generate", END)
    print(outer.compile().invoke({"question": scene.QUESTION})["answer"])


def _agent() -> None:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    model = ChatOpenAI(model="gpt-4o-mini", max_retries=0)
    agent = create_agent(model, tools=[search_guide], system_prompt=scene.SYSTEM)
    for question in (scene.QUESTION, scene.FAILING):
        try:
            for _ in agent.stream({"messages": [{"role": "user", "content": question}]}, stream_mode="messages"):
                pass
        except Exception as refused:
            print(refused)


def main(mode: str) -> None:
    from record import telemetry

    os.environ.update(LANGSMITH_TRACING="false")
    provider = telemetry.tracer_provider()
    _instrument(mode, provider)
    if mode.endswith("agent"):
        _agent()
    else:
        _graph(mode)
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
