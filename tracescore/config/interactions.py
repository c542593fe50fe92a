"""Settings of how traces are read."""

from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.types import Section


class MappingConfig(Section):
    """The attribute keys of a library that no convention covers; name at least one."""

    name: str = Field(default="*", min_length=1)
    """Which spans: `*` and `?` stand for any text and any character, case counts."""
    kind: Literal["agent", "chain", "llm", "retriever", "reranker", "tool", "embedding"] | None = None
    """What these spans are. Without it: a retriever where only `contexts` are named, else an agent."""
    question: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the question; the first that a span has wins."""
    answer: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the answer."""
    contexts: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the passages: one text, or a list of texts or documents."""
    history: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the earlier turns, as a list of messages."""

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that are named."""
        return (*self.question, *self.answer, *self.contexts, *self.history)

    def fits(self, name: str) -> bool:
        """Whether spans of this name are meant."""
        return self.name == "*" or fnmatchcase(name, self.name)

    @model_validator(mode="after")
    def _names_a_key(self) -> Self:
        if not self.keys:
            raise ValueError("at least one key expected, under question, answer, contexts or history")
        return self


class InteractionsConfig(Section):
    """Your own attribute keys for what tracescore reads. They come before those of the conventions."""

    question: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the question, on a span of any name; the first that a span has wins."""
    answer: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the answer."""
    contexts: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the passages: one text, or a list of texts or documents."""
    tenant: tuple[str, ...] = Field(default=(), strict=False)
    """Keys that hold the tenant, which becomes the slice `tenant`; the first that is present wins."""
    mappings: tuple[MappingConfig, ...] = Field(default=(), strict=False)
    """Keys by the names of spans; the first mapping that fits wins."""

    @cached_property
    def own(self) -> tuple[MappingConfig, ...]:
        """All keys of the user's own as mappings: those that are named for spans of any name come last."""
        if not (self.question or self.answer or self.contexts):
            return self.mappings
        everywhere = MappingConfig(question=self.question, answer=self.answer, contexts=self.contexts)
        return (*self.mappings, everywhere)
