"""Settings of what is taken out of texts."""

import re
from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from tracescore.config.types import Expression, Section

ReadyMade = Literal["email", "card", "phone"]
"""Patterns that need not be written: e-mail addresses, payment card numbers, telephone numbers."""


class RedactionConfig(Section):
    """What tracescore takes out of texts before the judge, a destination or the page sees them."""

    patterns: tuple[ReadyMade, ...] = Field(default=(), strict=False)
    """E-mail addresses, payment card numbers (with a right check digit), telephone numbers."""
    custom: dict[str, Expression] = Field(default_factory=dict)
    """Your own expressions, by a name of small letters, digits and `_`; a match becomes `[name]`."""

    @model_validator(mode="after")
    def _names_can_be_labels(self) -> Self:
        for name in self.custom:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name in get_args(ReadyMade):
                raise ValueError(
                    f"custom: a name of small letters, digits and _ expected, not one of "
                    f"{', '.join(get_args(ReadyMade))}; got {name!r}"
                )
        return self
