"""Settings of the page with the evidence behind the scores."""

from pydantic import Field

from tracescore.config.types import Address, Secret, Section


class WebConfig(Section):
    """The page with the evidence behind the scores. Holds user text."""

    listen: Address = "127.0.0.1:9465"
    token: Secret | None = None
    """Required unless the page listens on loopback."""
    keep: int = Field(default=1_000, ge=1)
    """Results kept in memory for the page."""
