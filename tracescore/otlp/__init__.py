"""Bytes <-> spans: whatever reads OTLP (receiver, pipeline, inspect, gold) reads it here."""
