"""Shapes of conventions, libraries and modes beyond those captured; each written after its documentation or source."""

from __future__ import annotations

import json

import pytest

from tests.spans import CLIENT, chain, chat, event, messages, read, span, trace
from tracescore.interactions import MARKERS, content_switch
from tracescore.interactions.table import CONVENTIONS
from tracescore.model import Interaction, Message, Trace

P1 = "A Fernway bike may be kept for 45 minutes before a late fee is charged."
P2 = "A lost lock key costs 11 crowns, and a new one comes by post."
Q, A = "How long can I keep it?", "45 minutes."
DOCS = json.dumps([{"page_content": P1, "metadata": {}}, {"page_content": P2, "metadata": {}}])


def only(made: Trace) -> Interaction:
    [got] = read(made)
    return got


def complete(made: Trace, contexts: tuple[str, ...] = (P1, P2)) -> Interaction:
    got = only(made)
    assert (got.question, got.answer, got.contexts, got.state) == (Q, A, contexts, "complete")
    return got


def test_openai_agents_through_openinference():
    """The workflow span records nothing; agent, model calls and tools stand below."""
    asked = {"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user"}
    asked["llm.input_messages.0.message.content"] = Q
    calls = {"llm.output_messages.0.message.role": "assistant"}
    calls["llm.output_messages.0.message.tool_calls.0.tool_call.id"] = "c"
    calls["llm.output_messages.0.message.tool_calls.0.tool_call.function.name"] = "search_handbook"
    tool = {"openinference.span.kind": "TOOL", "tool.name": "search_handbook", "output.value": json.dumps([P1, P2])}
    said = {"llm.output_messages.0.message.role": "assistant"}
    said["llm.output_messages.0.message.contents.0.message_content.type"] = "text"
    said["llm.output_messages.0.message.contents.0.message_content.text"] = A
    steps = (span("response", {**asked, **calls}), span("search_handbook", tool), span("response", {**asked, **said}))
    agent = span("Handbook", {"openinference.span.kind": "AGENT"}, *steps)
    got = complete(trace(span("Agent workflow", {"openinference.span.kind": "AGENT"}, agent)))
    assert (got.span_id, got.context_source) == ("s1", "tool")


def test_openai_agents_through_the_official_instrumentation():
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.result": DOCS}
    steps = (span("execute_tool search", tool), chat(Q, A))
    made = trace(span("invoke_agent Handbook", {"gen_ai.operation.name": "invoke_agent"}, *steps))
    assert complete(made).convention == "otel-genai"


def test_semantic_kernel_puts_json_into_log_bodies():
    logs = (
        ("gen_ai.system.message", json.dumps({"role": "system", "content": "Be kind."}), {}),
        ("gen_ai.user.message", json.dumps({"role": "user", "content": f"Context:\n{P1}\n\nQuestion: {Q}"}), {}),
        ("gen_ai.choice", json.dumps({"index": 0, "message": {"role": "assistant", "content": A}}), {}),
    )
    call = {"gen_ai.operation.name": "chat.completions", "gen_ai.system": "openai", "gen_ai.request.model": "m"}
    got = complete(trace(span("chat.completions m", call, logs=logs)), (P1,))
    assert got.context_source == "prompt"


def test_azure_puts_json_into_an_event_attribute():
    def happened(name, content):
        return event(name, gen_ai__event__content=json.dumps(content))

    events = (
        happened("gen_ai.user.message", {"role": "user", "content": Q}),
        happened("gen_ai.choice", {"message": {"content": A}, "finish_reason": "stop", "index": 0}),
    )
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    got = only(trace(span("chat m", call, events=events)))
    assert (got.question, got.answer, got.state) == (Q, A, "no_contexts")


def test_azure_without_content_still_sends_the_choice():
    events = (event("gen_ai.choice", gen_ai__event__content=json.dumps({"finish_reason": "stop", "index": 0})),)
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    assert only(trace(span("chat m", call, events=events))).state == "content_not_captured"


def test_events_of_one_message_each_on_spans():
    events = (event("gen_ai.user.message", content=Q), event("gen_ai.choice", message=json.dumps({"content": A})))
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    got = only(trace(span("chat m", call, events=events)))
    assert (got.question, got.answer) == (Q, A)


def test_content_events_of_older_conventions():
    events = (
        event("gen_ai.content.prompt", gen_ai__prompt=json.dumps([{"role": "user", "content": Q}])),
        event("gen_ai.content.completion", gen_ai__completion=json.dumps([{"role": "assistant", "content": A}])),
    )
    got = only(trace(span("chat", {"gen_ai.system": "openai", "gen_ai.request.model": "m"}, events=events)))
    assert (got.question, got.answer) == (Q, A)


def test_structured_attributes_are_read_as_well_as_json():
    call = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": Q}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": A}]}],
    }
    found = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": [{"id": "1", "content": P1}, {"id": "2", "content": P2}],
    }
    complete(trace(span("ask", {}, span("retrieval", found), span("chat", call))))


def test_langfuse_3_types_everything_but_generations_as_span():
    root = {"langfuse.observation.type": "span", "langfuse.trace.input": json.dumps({"args": [Q], "kwargs": {}})}
    root |= {"langfuse.trace.output": A, "langfuse.release": "7", "langfuse.environment": "prod"}
    kb = {"langfuse.observation.type": "span", "langfuse.observation.output": json.dumps([P1, P2])}
    call = {"langfuse.observation.type": "generation", "langfuse.observation.output": A}
    steps = (span("retrieve", kb, scope_name="langfuse-sdk"), span("llm", call, scope_name="langfuse-sdk"))
    got = complete(trace(span("rag", root, *steps, scope_name="langfuse-sdk")))
    assert (got.convention, got.release, got.environment) == ("langfuse", "7", "prod")


def test_mlflow_in_genai_mode_holds_the_passages_only_in_the_prompt():
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": messages(("user", Q))}
    root["gen_ai.output.messages"] = messages(("assistant", A))
    got = complete(
        trace(span("rag", root, chat(f"Passages:\n{P1}\n\n{P2}\n\nQuestion: {Q}\nAnswer:", A))), (f"{P1}\n\n{P2}",)
    )
    assert got.context_source == "prompt"


def test_dspy_through_the_official_instrumentation():
    system = "Structure:\n\n[[ ## context ## ]]\n{context}\n\n[[ ## question ## ]]\n{question}"
    user = f"[[ ## context ## ]]\n[1] «{P1}»\n[2] «{P2}»\n\n[[ ## question ## ]]\n{Q}\n\nRespond with the fields."
    said = f"[[ ## reasoning ## ]]\nx\n\n[[ ## answer ## ]]\n{A}\n\n[[ ## completed ## ]]"
    got = only(trace(chat(messages(("system", system), ("user", user)), said)))
    assert (got.question, got.answer, got.context_source) == (Q, A, "prompt")
    assert P1 in got.contexts[0]
    assert P2 in got.contexts[0]


def test_haystack_agents_call_tools_through_an_invoker():
    said = {"role": "assistant", "content": [{"text": A}]}
    result = {"result": json.dumps([P1, P2]), "origin": {"tool_name": "search", "id": "c"}, "error": False}
    invoker = {
        "haystack.component.type": "ToolInvoker",
        "haystack.component.output": json.dumps(
            {"tool_messages": [{"role": "tool", "content": [{"tool_call_result": result}]}]}
        ),
    }
    generator = {
        "haystack.component.type": "OpenAIChatGenerator",
        "haystack.component.input": json.dumps({"messages": [{"role": "user", "content": [{"text": Q}]}]}),
        "haystack.component.output": json.dumps({"replies": [said]}),
    }
    root = {"haystack.agent.input": json.dumps({"messages": [{"role": "user", "content": [{"text": Q}]}]})}
    root["haystack.agent.output"] = json.dumps({"messages": [{"role": "user", "content": [{"text": Q}]}, said]})
    steps = (span("haystack.component.run", invoker), span("haystack.component.run", generator))
    assert complete(trace(span("haystack.agent.run", root, *steps))).convention == "haystack"


def test_haystack_pipelines_that_say_what_came_out():
    root = {
        "haystack.pipeline.input_data": json.dumps({"retriever": {"query": Q}, "prompt": {"question": Q}}),
        "haystack.pipeline.output_data": json.dumps({"llm": {"replies": [A]}}),
    }
    kb = {"haystack.component.type": "QdrantEmbeddingRetriever"}
    kb["haystack.component.output"] = json.dumps(
        {"documents": [{"id": "1", "content": P1}, {"id": "2", "content": P2}]}
    )
    complete(trace(span("haystack.pipeline.run", root, span("haystack.component.run", kb))))


def test_vercel_7_follows_the_official_convention():
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "searchDocs",
        "gen_ai.tool.call.result": json.dumps([P1, P2]),
    }
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": messages(("user", Q))}
    root["gen_ai.output.messages"] = messages(("assistant", A))
    step = span("agent_step", {"gen_ai.operation.name": "agent_step"}, span("execute_tool", tool), chat(Q, A))
    complete(trace(span("invoke_agent m", root, step, scope_name="gen_ai")))


def test_vercel_reranking_keeps_what_it_ranked():
    root = {"ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"prompt": Q}), "ai.response.text": A}
    rank = {"ai.operationId": "ai.rerank", "ai.documents": json.dumps([P2, "other", P1])}
    rank["ai.ranking"] = json.dumps([{"index": 2, "score": 0.9}, {"index": 0, "score": 0.5}])
    call = span("ai.generateText.doGenerate", {"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": A})
    complete(trace(span("ai.generateText", root, span("ai.rerank", rank), call, scope_name="ai")))


def test_pydantic_ai_in_its_older_format():
    said = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": Q, "gen_ai.message.index": 0},
        {
            "event.name": "gen_ai.assistant.message",
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "x"}}],
        },
        {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c", "content": P1},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": A},
    ]
    root = {"agent_name": "handbook", "all_messages_events": json.dumps(said), "final_result": A}
    tool = {"gen_ai.tool.name": "retrieve", "tool_response": json.dumps([P1, P2])}
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "events": json.dumps(said)}
    steps = (span("running tool: retrieve", tool, scope_name="pydantic-ai"), span("chat m", call))
    made = trace(span("agent run", root, *steps, scope_name="pydantic-ai"))
    assert complete(made).convention == "pydantic-ai"


def test_logfires_own_wrapper_of_the_openai_client():
    call = {
        "request_data": json.dumps({"messages": [{"role": "user", "content": Q}], "model": "m"}),
        "response_data": json.dumps({"message": {"role": "assistant", "content": A}, "usage": None}),
    }
    got = only(trace(span("Chat Completion with 'm'", call)))
    assert (got.question, got.answer, got.convention) == (Q, A, "logfire")


def test_langsmith_labels_retrievers_as_embeddings():
    kb = {
        "langsmith.span.kind": "retriever",
        "gen_ai.operation.name": "embeddings",
        "gen_ai.completion": json.dumps({"documents": json.loads(DOCS)}),
    }
    root = {
        "langsmith.span.kind": "chain",
        "gen_ai.prompt": json.dumps({"question": Q}),
        "gen_ai.completion": json.dumps({"output": A}),
    }
    llm = {"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat"}
    complete(trace(span("rag", root, span("kb", kb), span("llm", llm))))


def test_a_streamed_langsmith_root_yields_tokens():
    root = {"langsmith.span.kind": "chain", "gen_ai.prompt": json.dumps({"question": Q})}
    root["gen_ai.completion"] = json.dumps({"output": ["45", " minutes", "."]})
    llm = {"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat"}
    assert only(trace(span("rag", root, span("llm", llm)))).answer == A


def test_openllmetry_vector_database_spans():
    events = (
        event("db.query.result", db__query__result__id="1", db__query__result__document=P1),
        event("db.query.result", db__query__result__id="2", db__query__result__document=P2),
    )
    root = {"traceloop.span.kind": "workflow", "traceloop.entity.input": json.dumps({"args": [Q], "kwargs": {}})}
    root["traceloop.entity.output"] = json.dumps(A)
    steps = (span("chroma.query", {"db.system": "chroma", "db.operation": "query"}, events=events), chat(Q, A))
    complete(trace(span("rag.workflow", root, *steps)))


def test_openllmetry_numbers_the_messages_of_older_versions():
    call = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be kind.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": json.dumps([{"type": "text", "text": Q}]),
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": A,
    }
    got = only(trace(span("openai.chat", call)))
    assert (got.question, got.answer) == (Q, A)


def test_google_adk_and_genkit():
    request = {"contents": [{"role": "user", "parts": [{"text": Q}]}], "model": "m"}
    reply = {"content": {"role": "model", "parts": [{"text": A}]}}
    call = {"gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": json.dumps(reply)}
    tool = {
        "gen_ai.tool.name": "search",
        "gcp.vertex.agent.llm_request": "{}",
        "gcp.vertex.agent.tool_response": json.dumps({"result": [P1, P2]}),
    }
    steps = (span("execute_tool search", tool), span("call_llm", call))
    complete(trace(span("invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, *steps)))
    kb = {
        "genkit:type": "action",
        "genkit:metadata:subtype": "retriever",
        "genkit:output": json.dumps({"documents": [{"content": [{"text": P1}]}]}),
    }
    flow = {
        "genkit:type": "flow",
        "genkit:metadata:subtype": "flow",
        "genkit:input": json.dumps(Q),
        "genkit:output": json.dumps(A),
    }
    complete(trace(span("flow", flow, span("kb", kb))), (P1,))


def test_openlit_keeps_three_documents_and_says_of_how_many():
    found = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": json.dumps([{"content": P1, "id": "1"}]),
        "gen_ai.retrieval.document_count": 4,
    }
    root = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.input.messages": messages(("user", Q))}
    root["gen_ai.output.messages"] = messages(("assistant", A))
    got = only(trace(span("invoke_workflow", root, span("retrieval kb", found), chat(Q, A), scope_name="openlit.x")))
    assert got.state == "partial_contexts"


def test_llamaindex_streams_leave_the_root_silent():
    root = span(
        "RetrieverQueryEngine.query",
        {},
        events=(event("QueryStartEvent", query=Q),),
        scope_name="llamaindex.opentelemetry.tracer",
    )
    nodes = json.dumps([{"node": {"text": P1}, "score": 1.0}, {"node": {"text_resource": {"text": P2}}, "score": 0.5}])
    said = json.dumps([{"block_type": "text", "text": A}])
    root.children = (
        span(
            "R.retrieve",
            {},
            events=(event("RetrievalEndEvent", nodes=nodes),),
            scope_name="llamaindex.opentelemetry.tracer",
        ),
        span(
            "OpenAI.stream_chat",
            {},
            events=(
                event("LLMChatStartEvent", messages="[]"),
                event("LLMChatEndEvent", response__message__blocks=said),
            ),
            scope_name="llamaindex.opentelemetry.tracer",
        ),
    )
    complete(trace(root))


def test_langchain4j_records_no_content():
    call = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m"}
    assert only(trace(span("chat m", call, kind=CLIENT))).state == "content_not_captured"


def test_two_conventions_on_one_trace_are_one_interaction():
    """LangChain by OpenInference, its OpenAI client by the official instrumentation."""
    outer = {"openinference.span.kind": "LLM", "output.value": A, "llm.output_messages.0.message.role": "assistant"}
    outer["llm.output_messages.0.message.content"] = A
    kb = span("kb", {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": P1})
    got = complete(trace(chain(Q, A, kb, span("ChatOpenAI", outer, chat(Q, A)))), (P1,))
    assert got.convention == "openinference"


def test_phoenix_writes_an_output_that_is_no_answer():
    call = chat(Q, A)
    call.attributes |= {"openinference.span.kind": "LLM", "output.value": json.dumps({"id": "c", "model": "m"})}
    assert only(trace(call)).answer == A


def test_langchain_messages_printed_as_text_are_history():
    history = [
        "content='Hi' additional_kwargs={} response_metadata={}",
        "content='Hello' additional_kwargs={} response_metadata={} tool_calls=[] invalid_tool_calls=[]",
    ]
    got = only(trace(chain({"input": Q, "history": history}, A, chat(Q, A))))
    assert got.history == (Message("user", "Hi"), Message("assistant", "Hello"))


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
def test_every_convention_names_its_switch_and_its_marks(convention):
    assert content_switch(convention.name)
    assert convention.marks or convention.scopes or convention.events
    assert all(mark.count(".") <= 1 for mark in convention.marks)
    assert all(len(marker) > 3 for marker in MARKERS)


def test_names_of_conventions_are_distinct_and_fit_a_label():
    names = [convention.name for convention in CONVENTIONS]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() for name in names)
