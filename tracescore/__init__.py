"""tracescore scores live RAG traces and publishes the scores as Prometheus gauges and on the traces themselves."""

__version__ = "0.1.0"
