// Genkit for JavaScript: a flow that retrieves and generates, and one whose model searches by a tool.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import openAI from "@genkit-ai/compat-oai/openai";
import { genkit, z } from "genkit";
import { enableTelemetry, flushTracing } from "genkit/tracing";

const scene = JSON.parse(process.env.SCENE);
await enableTelemetry({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())], instrumentations: [] });
const plugin = openAI.default ?? openAI;
const ai = genkit({ plugins: [plugin({ apiKey: "none", baseURL: process.env.OPENAI_BASE_URL })], model: "openai/gpt-4o-mini" });

const guide = ai.defineRetriever({ name: "guide" }, async () => ({
  documents: scene.PASSAGES.map((text) => ({ content: [{ text }] })),
}));
const searchGuide = ai.defineTool(
  { name: "search_guide", description: "Search the visitors' guide.", inputSchema: z.object({ query: z.string() }), outputSchema: z.string() },
  async () => scene.FOUND,
);
const ask = ai.defineFlow({ name: "ask", inputSchema: z.string(), outputSchema: z.string() }, async (question) => {
  if (process.argv[2] === "tool") {
    return (await ai.generate({ system: scene.SYSTEM, prompt: question, tools: [searchGuide] })).text;
  }
  const docs = await ai.retrieve({ retriever: guide, query: question });
  return (await ai.generate({ prompt: `Answer the visitor: ${question}`, docs })).text;
});
console.log(await ask(scene.QUESTION));
await flushTracing();
process.exit(0);
