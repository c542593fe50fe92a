// LangChain.js through OpenInference.
import * as callbacks from "@langchain/core/callbacks/manager";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { LangChainInstrumentation } from "@arizeai/openinference-instrumentation-langchain";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { createAgent } from "langchain";
import { z } from "zod";

const scene = JSON.parse(process.env.SCENE);
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
new LangChainInstrumentation({ tracerProvider: provider }).manuallyInstrument(callbacks);

const search = tool(async () => scene.FOUND, {
  name: "search_guide",
  description: "Search the visitors' guide.",
  schema: z.object({ query: z.string() }),
});
const model = new ChatOpenAI({ model: "gpt-4o-mini", configuration: { baseURL: process.env.OPENAI_BASE_URL } });
const agent = createAgent({ model, tools: [search], systemPrompt: scene.SYSTEM });
const done = await agent.invoke({ messages: [{ role: "user", content: scene.QUESTION }] });
console.log(done.messages.at(-1).content);
await provider.forceFlush();
process.exit(0);
