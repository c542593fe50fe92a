"""MLflow tracing over OTLP: every attribute is JSON-encoded, the span type too."""

from __future__ import annotations

from tracescore.interactions import values
from tracescore.interactions.convention import Convention, Kind, Node, attribute, when

_KINDS: dict[str, Kind] = {
    "LLM": "llm",
    "CHAT_MODEL": "llm",
    "CHAIN": "chain",
    "AGENT": "agent",
    "WORKFLOW": "chain",
    "TASK": "chain",
    "PARSER": "chain",
    "UNKNOWN": "chain",
    "TOOL": "tool",
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "EMBEDDING": "embedding",
    "GUARDRAIL": "guardrail",
    "EVALUATOR": "evaluator",
}


def _kind(node: Node) -> Kind | None:
    return _KINDS.get(str(values.data(node.attributes.get("mlflow.spanType", ""))).upper())


_INPUTS, _OUTPUTS = attribute("mlflow.spanInputs"), attribute("mlflow.spanOutputs")

CONVENTION = Convention(
    name="mlflow",
    switch="mlflow.tracing.enable() without a span processor that drops inputs and outputs",
    kind=_kind,
    marks=("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.traceRequestId"),
    input=_INPUTS,
    output=_OUTPUTS,
    sent=when(("llm",), _INPUTS),
    received=when(("llm",), _OUTPUTS),
    documents=when(("retriever", "reranker"), _OUTPUTS),
    query=when(("retriever", "embedding"), _INPUTS),
    tool_result=when(("tool",), _OUTPUTS),
)
