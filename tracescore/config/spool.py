"""Settings of what survives a restart."""

from pydantic import Field

from tracescore.config.types import Section, Size


class SpoolConfig(Section):
    """What must survive a restart."""

    path: str | None = Field(default=None, min_length=1)
    """A file; it holds text of your users. Without it everything is in memory alone."""
    max_size: Size = Field(default=2**30, ge=16 * 2**20)
    """At about this size senders are asked to come back later."""
