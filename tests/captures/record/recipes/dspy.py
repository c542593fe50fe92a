"""DSPy: a ReAct program with a search tool and a RAG program, through OpenInference and MLflow's autologging."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from .. import scene
from ..setups import LISTED, TOOL, Setup

_OPENINFERENCE = ("dspy==3.4.1", "openinference-instrumentation-dspy==0.1.48")
_MLFLOW = ("dspy==3.4.1", "mlflow-skinny==3.17.2", "numpy==2.3.5", "pandas==2.3.3")
SETUPS = (
    Setup(
        name="dspy-react-openinference",
        packages=_OPENINFERENCE,
        mode="openinference-react",
        turns=(TOOL,),
        special="ReAct('question -> answer') with a search tool: trajectory in the steps",
    ),
    Setup(
        name="dspy-react-mlflow",
        packages=_MLFLOW,
        mode="mlflow-react",
        turns=(TOOL,),
        special="ReAct('question -> answer') with a search tool; mlflow.dspy.autolog() exporting over OTLP",
    ),
    Setup(
        name="dspy-rag-mlflow",
        packages=_MLFLOW,
        mode="mlflow-rag",
        turns=(replace(LISTED, root="Guide.forward"),),
        special="a module of one's own with dspy.Embeddings as retriever and ChainOfThought; mlflow.dspy.autolog()",
    ),
)


def main(mode: str) -> None:
    from record import telemetry

    provider = telemetry.tracer_provider()
    if mode.startswith("openinference"):
        from openinference.instrumentation.dspy import DSPyInstrumentor

        DSPyInstrumentor().instrument(tracer_provider=provider)
    else:
        import mlflow

        mlflow.dspy.autolog()
    import dspy

    dspy.configure(lm=dspy.LM("openai/gpt-4o-mini", api_base=os.environ["OPENAI_BASE_URL"], cache=False))
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)

    def search_guide(query: str) -> str:
        """Search the visitors' guide."""
        return scene.search(query)

    class Guide(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            embedder = dspy.Embedder("openai/text-embedding-3-small", api_base=os.environ["OPENAI_BASE_URL"])
            self.search = dspy.Embeddings(embedder=embedder, corpus=list(scene.PASSAGES), k=2)
            self.respond = dspy.ChainOfThought("context, question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            return self.respond(context=self.search(question).passages, question=question)

    program = dspy.ReAct("question -> answer", tools=[search_guide]) if mode.endswith("react") else Guide()
    print(program(question=scene.QUESTION).answer)
    provider.force_flush()


if __name__ == "__main__":
    main(sys.argv[1])
