// Vercel's AI SDK 7 with its OpenTelemetry integration.
import { createOpenAI } from "@ai-sdk/openai";
import { LegacyOpenTelemetry, OpenTelemetry } from "@ai-sdk/otel";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { generateText, registerTelemetry, stepCountIs, tool, ToolLoopAgent } from "ai";
import { z } from "zod";

const mode = process.argv[2];
const scene = JSON.parse(process.env.SCENE);
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
registerTelemetry(mode === "legacy" ? new LegacyOpenTelemetry() : new OpenTelemetry());

const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat("gpt-4o-mini");
const quiet = mode === "nocontent" ? { recordInputs: false, recordOutputs: false } : {};
const telemetry = { functionId: "guide", ...quiet };

async function ask(question) {
  const agent = new ToolLoopAgent({
    model,
    instructions: scene.SYSTEM,
    maxRetries: 0,
    telemetry,
    stopWhen: stepCountIs(5),
    tools: {
      search_guide: tool({
        description: "Search the visitors' guide.",
        inputSchema: z.object({ query: z.string() }),
        execute: async () => scene.FOUND,
      }),
    },
  });
  const streamed = await agent.stream({ prompt: question });
  for await (const part of streamed.textStream) process.stdout.write(part);
}

if (mode === "legacy") {
  const prompt = scene.PROMPT.replace("{notes}", scene.NOTES).replace("{question}", scene.QUESTION);
  await generateText({ model, system: scene.SYSTEM, prompt, telemetry });
} else {
  await ask(scene.QUESTION);
  if (mode === "agent") await ask(scene.FAILING).catch((refused) => console.log(String(refused)));
}
await provider.forceFlush();
process.exit(0);
