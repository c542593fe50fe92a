"""MLflow's autologging of OpenAI and LangGraph, exported over OTLP."""

from __future__ import annotations

import sys
from dataclasses import replace

from .. import scene
from ..setups import FAILED, LISTED, PROMPT, TOOL, Setup

_BASE = ("mlflow-skinny==3.17.2", "numpy==2.3.5", "pandas==2.3.3", "openai==2.54.0")
SETUPS = (
    Setup(
        name="mlflow-openai-autolog",
        packages=_BASE,
        mode="openai",
        turns=(PROMPT, replace(PROMPT, key="streamed"), FAILED),
        special="mlflow.openai.autolog(): whole, streamed, refused",
    ),
    Setup(
        name="mlflow-trace-decorator",
        packages=_BASE,
        mode="decorator",
        turns=(LISTED,),
        special="@mlflow.trace with span types CHAIN and RETRIEVER around the autologged client",
    ),
    Setup(
        name="mlflow-langgraph-autolog",
        packages=(*_BASE, "langgraph==1.2.24", "langchain==1.5.2", "langchain-openai==1.7.4"),
        mode="langgraph",
        turns=(TOOL,),
        special="mlflow.langchain.autolog() of create_agent",
    ),
)


def _complete(question: str, *, stream: bool = False) -> str:
    from openai import OpenAI

    content = scene.PROMPT.format(notes=scene.NOTES, question=question)
    messages = [{"role": "system", "content": scene.SYSTEM}, {"role": "user", "content": content}]
    made = OpenAI(max_retries=0).chat.completions.create(model="gpt-4o-mini", messages=messages, stream=stream)
    if stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in made if chunk.choices)
    return made.choices[0].message.content


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    import mlflow

    if mode == "langgraph":
        from langchain.agents import create_agent
        from langchain_core.tools import tool
        from langchain_openai import ChatOpenAI

        mlflow.langchain.autolog()

        @tool
        def search_guide(query: str) -> str:
            """Search the visitors' guide."""
            return scene.search(query)

        agent = create_agent(ChatOpenAI(model="gpt-4o-mini"), tools=[search_guide], system_prompt=scene.SYSTEM)
        print(agent.invoke({"messages": [{"role": "user", "content": scene.QUESTION}]})["messages"][-1].content)
    else:
        mlflow.openai.autolog()
        if mode == "decorator":

            @mlflow.trace(span_type="RETRIEVER")
            def retrieve(question: str) -> list[dict[str, object]]:
                return [{"page_content": text, "metadata": {"page": n}} for n, text in enumerate(scene.PASSAGES, 1)]

            @mlflow.trace(span_type="CHAIN")
            def answer(question: str) -> str:
                retrieve(question)
                return _complete(question)

            answer(scene.QUESTION)
        else:
            _complete(scene.QUESTION)
            _complete(scene.QUESTION, stream=True)
            try:
                _complete(scene.FAILING)
            except Exception as refused:
                print(refused)
    provider.force_flush()
    mlflow.flush_trace_async_logging()


if __name__ == "__main__":
    main(sys.argv[1])
