"""Settings of how traces are read."""

from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.types import Section


class MappingConfig(Section):
    """Where the spans of a library that no convention covers keep what is read; one key is needed at least.

    Every span whose name fits `name` (`*` and `?` as in file names, case counts) and that has one of the keys is taken
    for what `kind` says; without it, for a retriever where only `contexts` are named, else for an agent.
    """

    name: str = Field(default="*", min_length=1)
    kind: Literal["agent", "chain", "llm", "retriever", "reranker", "tool", "embedding"] | None = None
    question: tuple[str, ...] = Field(default=(), strict=False)
    answer: tuple[str, ...] = Field(default=(), strict=False)
    contexts: tuple[str, ...] = Field(default=(), strict=False)
    history: tuple[str, ...] = Field(default=(), strict=False)
    """Earlier turns, as a list of messages."""

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
    """How traces are read. Keys of your own come before those of the conventions."""

    question: tuple[str, ...] = Field(default=(), strict=False)
    answer: tuple[str, ...] = Field(default=(), strict=False)
    contexts: tuple[str, ...] = Field(default=(), strict=False)
    tenant: tuple[str, ...] = Field(default=(), strict=False)
    """Attribute keys that become the slice `tenant`; the first that is present wins."""
    mappings: tuple[MappingConfig, ...] = Field(default=(), strict=False)
    """Keys by the names of spans; the first that fits wins."""

    @cached_property
    def own(self) -> tuple[MappingConfig, ...]:
        """All keys of the user's own as mappings: those that are named for spans of any name come last."""
        if not (self.question or self.answer or self.contexts):
            return self.mappings
        everywhere = MappingConfig(question=self.question, answer=self.answer, contexts=self.contexts)
        return (*self.mappings, everywhere)
