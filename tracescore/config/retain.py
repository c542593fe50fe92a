"""Settings of how long tracescore keeps texts, and whose they are."""

from pydantic import Field

from tracescore.config.types import Duration, Section


class RetainConfig(Section):
    """How long tracescore keeps texts at most, and how it knows whose they are. Figures without text stay."""

    spool: Duration | None = None
    """Age at which results in the spool lose their texts, and interactions that wait for a judge that is away are
    dropped (`expired`); if not set, results lose them when `web.keep` newer ones have come, and what waits stays."""
    page: Duration | None = None
    """Age at which results and traces leave the page; if not set, they do when newer ones fill their room."""
    gold: Duration | None = None
    """Age at which runs in the gold store lose their questions and answers, except the runs that are the reference;
    if not set, runs keep them."""
    user: str = Field(default="user.id", min_length=1)
    """The span attribute that names a user, for `tracescore erase --user`."""
