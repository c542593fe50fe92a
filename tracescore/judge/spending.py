"""What one interaction has cost so far."""

from dataclasses import dataclass, field, replace

from tracescore.model import Usage


@dataclass(slots=True)
class Spending:
    """What one interaction has cost so far, and which models have answered it, in order."""

    usage: Usage
    models: list[str] = field(default_factory=list)

    def add(self, calls: int, input_tokens: int, output_tokens: int, cost: float | None) -> None:
        """Adds requests; the sum of the costs stays unknown where it was unknown or one of them is."""
        was = self.usage
        total = None if cost is None or was.cost is None else was.cost + cost
        tokens = {"input_tokens": was.input_tokens + input_tokens, "output_tokens": was.output_tokens + output_tokens}
        self.usage = replace(was, calls=was.calls + calls, cost=total, **tokens)

    def remember(self) -> None:
        """Adds a reply that was taken from the cache."""
        self.usage = replace(self.usage, cached=self.usage.cached + 1)
