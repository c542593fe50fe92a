"""Scores on the traces, over OTLP: an evaluation event and an evaluation span per scored interaction."""
