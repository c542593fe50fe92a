"""The set-ups in JavaScript: their scripts lie beside this file."""

from __future__ import annotations

from dataclasses import replace

from ..setups import FAILED, LISTED, PROMPT, SILENT, TOOL, Setup

_OTEL = (
    "@opentelemetry/api@1.9.1",
    "@opentelemetry/sdk-trace-node@2.12.1",
    "@opentelemetry/exporter-trace-otlp-proto@0.218.0",
)
_AI = ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/otel@1.0.173", "zod@4.6.7", *_OTEL)
_LANGCHAIN = (
    "langchain@1.5.14",
    "@langchain/core@1.4.0",
    "@langchain/openai@1.6.0",
    "@arizeai/openinference-instrumentation-langchain@4.1.1",
    "zod@4.6.7",
    *_OTEL,
)
_MASTRA = (
    "@mastra/core@1.71.0",
    "@mastra/observability@1.17.9",
    "@mastra/otel-exporter@1.4.0",
    "@ai-sdk/openai@4.0.118",
    "zod@4.6.7",
    "@opentelemetry/exporter-trace-otlp-proto@0.218.0",
)
_GENKIT = (
    "genkit@1.42.0",
    "@genkit-ai/compat-oai@1.42.0",
    "@opentelemetry/exporter-trace-otlp-proto@0.52.1",
    "@opentelemetry/sdk-trace-base@1.25.1",
)
_LANGFUSE = ("@langfuse/tracing@5.11.1", "@langfuse/otel@5.11.1", *_OTEL)
SETUPS = (
    Setup(
        name="langfuse-js",
        packages=_LANGFUSE,
        script="langfuse_js.mjs",
        turns=(replace(LISTED, root="ask"),),
        special="setActiveTraceIO with question and answer around a retriever and a generation",
    ),
    Setup(
        name="genkit-js-flow",
        packages=_GENKIT,
        mode="rag",
        script="genkit.mjs",
        turns=(replace(LISTED, root="ask"),),
        special="a flow that calls retrieve and generate({ docs })",
    ),
    Setup(
        name="genkit-js-tool",
        packages=_GENKIT,
        mode="tool",
        script="genkit.mjs",
        turns=(replace(TOOL, root="ask"),),
        special="a flow whose generate has a search tool",
    ),
    Setup(
        name="vercel-ai7-agent",
        packages=_AI,
        mode="agent",
        script="vercel_ai.mjs",
        turns=(TOOL, FAILED),
        special="AI SDK 7 with @ai-sdk/otel (GenAI semantic conventions): ToolLoopAgent streamed; a refused request",
    ),
    Setup(
        name="vercel-ai7-legacy",
        packages=_AI,
        mode="legacy",
        script="vercel_ai.mjs",
        turns=(PROMPT,),
        special="AI SDK 7 with LegacyOpenTelemetry (ai.* attributes): generateText with passages in the prompt",
    ),
    Setup(
        name="vercel-ai7-nocontent",
        packages=_AI,
        mode="nocontent",
        script="vercel_ai.mjs",
        turns=(SILENT,),
        switches="telemetry: { recordInputs: false, recordOutputs: false }",
        special="as vercel-ai7-agent, without content",
    ),
    Setup(
        name="langchain-js-openinference",
        packages=_LANGCHAIN,
        script="langchain_js.mjs",
        turns=(TOOL,),
        special="createAgent of LangChain.js with a search tool",
    ),
    Setup(
        name="mastra-otel-exporter",
        packages=_MASTRA,
        script="mastra.mjs",
        turns=(TOOL,),
        special="an Agent with a search tool, @mastra/otel-exporter over OTLP/HTTP",
    ),
    Setup(
        name="openai-js-openinference",
        packages=("openai@7.59.0", "@arizeai/openinference-instrumentation-openai@4.2.7", *_OTEL),
        script="openai_js.mjs",
        turns=(PROMPT, replace(PROMPT, key="streamed")),
        special="the OpenAI client for JavaScript: whole, streamed; a refused request leaves no span",
    ),
)
