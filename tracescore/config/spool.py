"""Settings of what survives a restart."""

from typing import Literal

from pydantic import Field

from tracescore.config.types import Section, Size


class SpoolConfig(Section):
    """A file that keeps spans, scores and counters across a restart and a crash."""

    path: str | None = Field(default=None, min_length=1)
    """The file; it holds your users' texts. Without it tracescore keeps all in memory, and a restart loses it."""
    store: Literal["all", "none"] = "all"
    """`none`: nothing that users wrote is in the file, only counters, figures and baselines. A crash or restart then
    loses what waited; labels, anchors and `attach: hold` are refused."""
    hand_over: bool = True
    """Whether the next process takes the file up, as on the volume of a StatefulSet: then SIGTERM leaves open traces to
    it. `false`: tracescore reads them at once and finishes what it can within `shutdown_grace`."""
    max_size: Size = Field(default=2**30, ge=16 * 2**20)
    """At about this size tracescore asks senders to come back later."""
