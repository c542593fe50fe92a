"""Which settings make an instrumentation record content, by the name and the version of its scope.

A convention alone does not say: many instrumentations share the keys of the GenAI conventions, and their settings
change from one version to the next. Each row was tried by running the library with its settings and without them
(`tests/captures/record`); an instrumentation without a row has the switch of its convention.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_KERNEL = "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS"


class Switch(NamedTuple):
    """A row: scopes whose name begins with `scope`, of a version of at least `since` where that matters."""

    scope: str
    settings: str
    since: tuple[int, ...] = ()


SWITCHES = (
    # Its scope has no version unless the opt-in is set, and then it is util.genai's: the advice holds for 2.0 to 2.4.
    Switch(
        "opentelemetry.instrumentation.openai_v2",
        f"{_CAPTURE}=true and a log exporter, both; or, from 2.4 on, {_OPT_IN} and {_CAPTURE}=SPAN_ONLY, both",
    ),
    Switch("opentelemetry.util.genai.", f"{_CAPTURE}=SPAN_ONLY"),
    Switch("opentelemetry.instrumentation.google_genai", f"{_CAPTURE}=SPAN_ONLY", since=(1,)),
    Switch(
        "opentelemetry.instrumentation.google_genai",
        f"{_OPT_IN} and {_CAPTURE}=SPAN_ONLY, both; or {_CAPTURE}=true and a log exporter, both",
    ),
    Switch("opentelemetry.instrumentation.genai.", f"{_CAPTURE}=SPAN_ONLY"),
    Switch("opentelemetry.instrumentation.", "TRACELOOP_TRACE_CONTENT=true"),
    Switch("gcp.vertex.agent", f"{_CAPTURE}=SPAN_ONLY (not ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS)", (2,)),
    Switch("gcp.vertex.agent", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"),
    Switch("semantic_kernel.", f"{_KERNEL}_SENSITIVE=true and a log handler on the logger semantic_kernel, both"),
    Switch("agent_framework", "ENABLE_SENSITIVE_DATA=true"),
    Switch("autogen-core", "no setting of AutoGen: instrument AgentChat or the model client beside it"),
    Switch("com.anthropic.sdk.", "no setting of the client: instrument it beside its own spans"),
    Switch("litellm", "litellm.turn_off_message_logging = False"),
    Switch("gen_ai", "telemetry: { recordInputs: true, recordOutputs: true } (AI SDK 7)"),
)
"""The first row that fits counts."""


def of(instrumentation: str) -> str:
    """The settings for a scope, given as "name version"; empty where no row fits."""
    name, _, version = instrumentation.partition(" ")
    number = tuple(map(int, re.findall(r"\d+", version)[:2]))
    return next((row.settings for row in SWITCHES if name.startswith(row.scope) and row.since <= number), "")
