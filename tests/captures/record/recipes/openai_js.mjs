// The OpenAI client for JavaScript through OpenInference.
import { OpenAIInstrumentation } from "@arizeai/openinference-instrumentation-openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import OpenAI from "openai";

const scene = JSON.parse(process.env.SCENE);
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
new OpenAIInstrumentation({ tracerProvider: provider }).manuallyInstrument(OpenAI);

const client = new OpenAI({ maxRetries: 0 });

async function ask(question, stream) {
  const content = scene.PROMPT.replace("{notes}", scene.NOTES).replace("{question}", question);
  const messages = [{ role: "system", content: scene.SYSTEM }, { role: "user", content }];
  const made = await client.chat.completions.create({ model: "gpt-4o-mini", messages, stream });
  if (stream) for await (const _ of made);
}

await ask(scene.QUESTION, false);
await ask(scene.QUESTION, true);
await ask(scene.FAILING, false).catch((refused) => console.log(String(refused)));
await provider.forceFlush();
process.exit(0);
