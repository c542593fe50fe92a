"""SDKs of observability platforms that export OTLP: Langfuse, LangSmith, OpenLIT, Traceloop."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace

from .. import scene
from ..setups import LISTED, SILENT, TOOL, Setup

_AGENT = ("langgraph==1.2.24", "langchain==1.5.2", "langchain-openai==1.7.4")
SETUPS = (
    Setup(
        name="langfuse-langgraph",
        packages=("langfuse==5.0.4", *_AGENT),
        mode="langfuse",
        turns=(TOOL,),
        special="Langfuse's callback handler on create_agent, streamed",
    ),
    Setup(
        name="langfuse-observe-retriever",
        packages=("langfuse==5.0.4", "openai==2.54.0"),
        mode="langfuse-observe",
        turns=(LISTED,),
        special="@observe(as_type='retriever') below @observe(), the drop-in OpenAI client streamed",
    ),
    Setup(
        name="langsmith-langgraph-otel",
        packages=("langsmith[otel]==0.15.1", *_AGENT),
        mode="langsmith",
        turns=(TOOL,),
        env={"LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true", "LANGSMITH_TRACING": "true"},
        switches="LANGSMITH_OTEL_ENABLED=true LANGSMITH_OTEL_ONLY=true LANGSMITH_TRACING=true",
        special="create_agent, streamed; exported by LangSmith's own exporter",
    ),
    Setup(
        name="langsmith-hidden",
        packages=("langsmith[otel]==0.15.1", *_AGENT),
        mode="langsmith",
        turns=(SILENT,),
        env={
            "LANGSMITH_OTEL_ENABLED": "true",
            "LANGSMITH_OTEL_ONLY": "true",
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_HIDE_INPUTS": "true",
            "LANGSMITH_HIDE_OUTPUTS": "true",
        },
        switches="LANGSMITH_HIDE_INPUTS=true LANGSMITH_HIDE_OUTPUTS=true",
        special="as langsmith-langgraph-otel, inputs and outputs hidden",
    ),
    Setup(
        name="openlit-langgraph",
        packages=("openlit==1.45.0", *_AGENT),
        mode="openlit",
        turns=(replace(TOOL, root="invoke_workflow"),),
        special="openlit.init() with create_agent, streamed",
    ),
    Setup(
        name="openlit-nocontent",
        packages=("openlit==1.45.0", *_AGENT),
        mode="openlit-nocontent",
        turns=(
            replace(
                TOOL,
                root="invoke_workflow",
                answer=None,
                state="content_not_captured",
                or_state=("no_answer",),
                contexts=None,
                passages=(),
                in_prompt=(scene.FOUND,),
                why="the setting takes the replies away and leaves what the model was sent; who switched content "
                "off knows why there is no answer, and nobody would have it scored: either state says so",
            ),
        ),
        switches="openlit.init(capture_message_content=False)",
        special="as openlit-langgraph, without content",
    ),
    Setup(
        name="traceloop-decorators-tool",
        packages=("traceloop-sdk==0.62.4", "openai==2.54.0"),
        mode="traceloop",
        turns=(LISTED,),
        special="@workflow, @task for retrieval, @agent and @tool around the OpenAI client, streamed",
    ),
    Setup(
        name="traceloop-nocontent",
        packages=("traceloop-sdk==0.62.4", "openai==2.54.0"),
        mode="traceloop",
        env={"TRACELOOP_TRACE_CONTENT": "false"},
        turns=(SILENT,),
        switches="TRACELOOP_TRACE_CONTENT=false",
        special="as traceloop-decorators-tool, without content",
    ),
)


def _agent(**config: object) -> None:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    agent = create_agent(ChatOpenAI(model="gpt-4o-mini"), tools=[search_guide], system_prompt=scene.SYSTEM)
    asked = {"messages": [{"role": "user", "content": scene.QUESTION}]}
    for _ in agent.stream(asked, config or None, stream_mode="values"):
        pass


def _complete(client: object) -> str:
    content = scene.PROMPT.format(notes=scene.NOTES, question=scene.QUESTION)
    messages = [{"role": "system", "content": scene.SYSTEM}, {"role": "user", "content": content}]
    made = client.chat.completions.create(model="gpt-4o-mini", messages=messages, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in made if chunk.choices)


def _langfuse(mode: str) -> Callable[[], object]:
    endpoint = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    os.environ.update(LANGFUSE_PUBLIC_KEY="pk-x", LANGFUSE_SECRET_KEY="sk-x", LANGFUSE_HOST=endpoint)
    os.environ["LANGFUSE_BASE_URL"] = endpoint
    from langfuse import Langfuse, observe

    client = Langfuse()
    if mode == "langfuse":
        from langfuse.langchain import CallbackHandler

        _agent(callbacks=[CallbackHandler()])
        return client.flush
    from langfuse.openai import OpenAI

    @observe(as_type="retriever")
    def retrieve(question: str) -> list[str]:
        return list(scene.PASSAGES)

    @observe()
    def answer(question: str) -> str:
        retrieve(question)
        return _complete(OpenAI())

    answer(scene.QUESTION)
    return client.flush


def _langsmith(_mode: str) -> Callable[[], object]:
    os.environ.update(LANGSMITH_API_KEY="x", LANGSMITH_ENDPOINT="http://127.0.0.1:9")
    from record import telemetry

    provider = telemetry.tracer_provider()
    _agent()
    from langchain_core.tracers.langchain import wait_for_all_tracers

    wait_for_all_tracers()
    return provider.force_flush


def _openlit(mode: str) -> Callable[[], object]:
    import openlit
    from record import telemetry

    provider = telemetry.tracer_provider()
    content = not mode.endswith("nocontent")
    openlit.init(otlp_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], capture_message_content=content)
    _agent()
    from opentelemetry import trace

    return getattr(trace.get_tracer_provider(), "force_flush", provider.force_flush)


def _traceloop(_mode: str) -> Callable[[], object]:
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import agent, task, tool, workflow

    Traceloop.init(app_name="desk", api_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], telemetry_enabled=False)
    from openai import OpenAI

    @task(name="retrieve_passages")
    def retrieve(question: str) -> list[str]:
        return list(scene.PASSAGES)

    @tool(name="opening_hours")
    def hours() -> dict[str, str]:
        return {"status": "open"}

    @agent(name="clerk")
    def clerk(question: str, passages: list[str]) -> str:
        hours()
        return _complete(OpenAI())

    @workflow(name="guide")
    def guide(question: str) -> str:
        return clerk(question, retrieve(question))

    guide(scene.QUESTION)
    from opentelemetry import trace

    return trace.get_tracer_provider().force_flush


def main(mode: str) -> None:
    begun = {"langfuse": _langfuse, "langsmith": _langsmith, "openlit": _openlit, "traceloop": _traceloop}
    begun[mode.split("-", maxsplit=1)[0]](mode)()


if __name__ == "__main__":
    main(sys.argv[1])
