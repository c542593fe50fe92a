// Mastra with its OpenTelemetry exporter.
import { createOpenAI } from "@ai-sdk/openai";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { Observability } from "@mastra/observability";
import { OtelExporter } from "@mastra/otel-exporter";
import { z } from "zod";

const scene = JSON.parse(process.env.SCENE);
const search = createTool({
  id: "search_guide",
  description: "Search the visitors' guide.",
  inputSchema: z.object({ query: z.string() }),
  execute: async () => scene.FOUND,
});
const clerk = new Agent({
  id: "clerk",
  name: "clerk",
  instructions: scene.SYSTEM,
  model: createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat("gpt-4o-mini"),
  tools: { search_guide: search },
});
const endpoint = `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`;
const exporter = new OtelExporter({ provider: { custom: { endpoint, protocol: "http/protobuf" } } });
const observability = new Observability({ configs: { otel: { serviceName: "observatory-desk", exporters: [exporter] } } });
const mastra = new Mastra({ agents: { clerk }, observability });
const done = await mastra.getAgent("clerk").generate(scene.QUESTION);
console.log(done.text);
await observability.shutdown?.();
await exporter.shutdown();
process.exit(0);
