"""Texts of users and apps as label values of metrics."""

_MAX_LABEL = 128


def label_value(value: str) -> str:
    """A label value made safe: printable, at most 128 characters, never empty (that would be no label at all)."""
    cut = value if len(value) <= _MAX_LABEL else value[: _MAX_LABEL - 1] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut) or "unknown"
