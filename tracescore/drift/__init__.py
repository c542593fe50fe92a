"""Estimates over time."""
