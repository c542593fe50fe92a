"""`tracescore demo`: a small RAG app that sends real telemetry, and a live table of what its answers score."""
