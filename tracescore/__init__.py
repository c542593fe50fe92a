"""tracescore scores live RAG traces and publishes the scores as Prometheus gauges and on the traces themselves.

In Python, `Case`, `score` and `ascore` score questions and answers without a service (docs/python.md).
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"
__all__ = ["Case", "MeanScore", "Measured", "ScoredCase", "ScoredCases", "__version__", "ascore", "score"]

_HOMES = {
    "Case": "tracescore.datasets.case",
    "MeanScore": "tracescore.scoring.results",
    "Measured": "tracescore.scoring.results",
    "ScoredCase": "tracescore.scoring.results",
    "ScoredCases": "tracescore.scoring.results",
    "ascore": "tracescore.scoring",
    "score": "tracescore.scoring",
}
"""Where the public names come from, when they are first used: `import tracescore` alone loads nothing. Types of them
are in __init__.pyi, where a type checker looks."""


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
