"""Settings of how long texts are kept, and whose they are."""

from pydantic import Field

from tracescore.config.types import Duration, Section


class RetainConfig(Section):
    """How long tracescore keeps texts at most, and how it knows whose they are. Figures without text stay."""

    spool: Duration | None = None
    """Results in the spool lose their texts after so long; without it when `web.keep` newer ones have come."""
    page: Duration | None = None
    """Results leave the page after so long; without it when `web.keep` newer ones have come."""
    gold: Duration | None = None
    """Runs in the gold store lose their questions and answers after so long, but for those that are the reference;
    without it with the run."""
    user: str = Field(default="user.id", min_length=1)
    """The attribute of spans that names a user, for `tracescore erase --user`."""
