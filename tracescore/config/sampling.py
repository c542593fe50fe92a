"""Settings of which interactions are scored."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tracescore.config.types import Ratio, Section

DEFAULT_RULE = "default"
"""The label `rule` of interactions that no rule matches."""


def _pattern(value: object) -> object:
    """`true` and `200` in YAML stand for the attribute values true and 200."""
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


AttributePattern = Annotated[str, BeforeValidator(_pattern)]


class SamplingRuleConfig(Section):
    """A ratio of its own for the interactions that match everything the rule names; values may hold * and ?."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")
    """The label `rule` in the metrics."""
    ratio: Ratio
    service: str | None = None
    environment: str | None = None
    route: str | None = None
    tenant: str | None = None
    status: Literal["ok", "error"] | None = None
    attributes: dict[str, AttributePattern] = Field(default_factory=dict)
    """Attributes of the span that scores attach to, or else of its resource."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not self.attributes and not any((self.service, self.environment, self.route, self.tenant, self.status)):
            raise ValueError("a rule names what it matches: service, environment, route, tenant, status or attributes")
        return self


class SamplingConfig(Section):
    """Which interactions are scored."""

    ratio: Ratio = 1.0
    """Of the interactions that no rule matches."""
    rules: tuple[SamplingRuleConfig, ...] = Field(default=(), strict=False)
    """The first one that matches decides."""
    max_per_minute: float | None = Field(default=None, gt=0)
    """Lowers all ratios so that about so many interactions are scored."""
    min_ratio: Ratio = 0.01
    """Bounds the weight of one score by 1 / min_ratio, without which no interval exists."""
    salt: str = Field(default="tracescore-1", min_length=1)
    """Keeps the choice independent of samplers upstream that hash the same trace ids."""

    @model_validator(mode="after")
    def _ratios_are_not_under_min_ratio(self) -> Self:
        for name, ratio in (("ratio", self.ratio), *((f"rule {rule.name}: ratio", rule.ratio) for rule in self.rules)):
            if ratio < self.min_ratio:
                raise ValueError(f"{name} must not be under min_ratio ({self.min_ratio}); got {ratio}")
        names = [DEFAULT_RULE, *(rule.name for rule in self.rules)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"rules: every name once, and not {DEFAULT_RULE}; got {name} twice")
        return self

    @property
    def largest_weight(self) -> float:
        """The largest weight that a score has while the rate limit is not felt."""
        return 1 / min(self.ratio, *(rule.ratio for rule in self.rules), 1.0)
