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
    """A ratio for the interactions that match everything the rule names; values may hold `*` and `?`."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")
    """The label `rule` in the metrics."""
    ratio: Ratio
    """The share of the matching interactions that tracescore scores."""
    service: str | None = None
    """Matches `service.name`."""
    environment: str | None = None
    """Matches `deployment.environment.name`."""
    route: str | None = None
    """Matches the HTTP route."""
    tenant: str | None = None
    """Matches what `interactions.tenant` found."""
    status: Literal["ok", "error"] | None = None
    """Matches whether the app answered or failed."""
    attributes: dict[str, AttributePattern] = Field(default_factory=dict)
    """Match attributes of the span that scores attach to, or else of its resource."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not self.attributes and not any((self.service, self.environment, self.route, self.tenant, self.status)):
            raise ValueError("a rule names what it matches: service, environment, route, tenant, status or attributes")
        return self


class SamplingConfig(Section):
    """Which interactions tracescore scores. Each score weighs 1 / its ratio, so no ratio moves a mean."""

    ratio: Ratio = 1.0
    """The share of interactions that tracescore scores where no rule matches."""
    rules: tuple[SamplingRuleConfig, ...] = Field(default=(), strict=False)
    """Other ratios for some interactions; the first rule that matches decides."""
    max_per_minute: float | None = Field(default=None, gt=0)
    """Interactions a minute: under more traffic tracescore lowers all ratios."""
    min_ratio: Ratio = 0.01
    """No ratio goes below this, so no score weighs more than 1 / `min_ratio`; intervals need that bound."""
    salt: str = Field(default="tracescore-1", min_length=1)
    """Keeps the choice independent of other samplers that hash the same trace ids. Give all replicas the same."""

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
