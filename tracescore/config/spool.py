"""Settings of the spool, the file that survives a restart."""

from typing import Literal

from pydantic import Field

from tracescore.config.types import Section, Size


class SpoolConfig(Section):
    """A file that keeps spans, scores and counters across a restart and a crash."""

    path: str | None = Field(default=None, min_length=1)
    """The file; it holds your users' texts. Without it tracescore keeps all in memory, and a restart loses it."""
    store: Literal["all", "none"] = "all"
    """`none`: the file holds counters, figures and baselines, but no text of users. A crash or restart then loses the
    interactions that wait, and tracescore refuses labels, anchors and `attach: hold`."""
    hand_over: bool = True
    """`true`: the next process opens the same file, as on the volume of a StatefulSet, so on SIGTERM tracescore leaves
    open traces to it. `false`: tracescore reads them at once and finishes what it can within `shutdown_grace`."""
    max_size: Size = Field(default=2**30, ge=16 * 2**20)
    """At about this file size tracescore asks senders to come back later."""
