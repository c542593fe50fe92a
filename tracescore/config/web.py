"""Settings of the page with the evidence behind the scores."""

from pydantic import Field

from tracescore.config.types import Address, Secret, Section


class WebConfig(Section):
    """The page with the evidence behind the scores. It shows your users' texts."""

    listen: Address = "127.0.0.1:9465"
    """Host and port of the page."""
    token: Secret | None = None
    """What readers must know; required unless the page listens on loopback."""
    keep: int = Field(default=1_000, ge=1)
    """Latest results that the page keeps."""
