"""Settings of how traces are read."""

from pydantic import Field

from tracescore.config.types import Section


class InteractionsConfig(Section):
    """How traces are read. Keys of your own come before those of the conventions."""

    question: tuple[str, ...] = Field(default=(), strict=False)
    answer: tuple[str, ...] = Field(default=(), strict=False)
    contexts: tuple[str, ...] = Field(default=(), strict=False)
    tenant: tuple[str, ...] = Field(default=(), strict=False)
    """Attribute keys that become the slice `tenant`; the first that is present wins."""
