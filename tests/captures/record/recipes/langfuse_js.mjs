// Langfuse's SDK for JavaScript: observations of one's own, sent to the sink in the stead of Langfuse.
import { LangfuseSpanProcessor } from "@langfuse/otel";
import { setActiveTraceIO, startActiveObservation } from "@langfuse/tracing";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const scene = JSON.parse(process.env.SCENE);
const exporter = new OTLPTraceExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new LangfuseSpanProcessor({ exporter })] });
provider.register();

await startActiveObservation("ask", async (root) => {
  root.update({ input: "a visitor at desk 4" });
  setActiveTraceIO({ input: scene.QUESTION });
  await startActiveObservation(
    "search",
    async (found) => found.update({ input: scene.QUESTION, output: scene.PASSAGES }),
    { asType: "retriever" },
  );
  const content = scene.PROMPT.replace("{notes}", scene.NOTES).replace("{question}", scene.QUESTION);
  const answer = await startActiveObservation(
    "reply",
    async (generation) => {
      const messages = [{ role: "user", content }];
      generation.update({ model: "gpt-4o-mini", input: messages });
      const reply = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "gpt-4o-mini", messages }),
      });
      const { message } = (await reply.json()).choices[0];
      generation.update({ output: message });
      return message.content;
    },
    { asType: "generation" },
  );
  root.update({ output: "desk 4 served" });
  setActiveTraceIO({ output: answer });
});
await provider.forceFlush();
process.exit(0);
