"""Label values of metrics that come from telemetry."""

from __future__ import annotations

_LONGEST = 128


def label(value: str) -> str:
    """A label value made safe: printable, at most 128 characters, never empty (that would be no label at all)."""
    cut = value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut) or "unknown"
