"""Settings of how spans become traces."""

from tracescore.config.types import Duration, Section, Size


class AssemblyConfig(Section):
    """Spans -> traces."""

    idle: Duration = 5.0
    """A trace whose root has come is read when nothing more came for this long."""
    orphan_idle: Duration = 30.0
    """The same for a trace whose root, or the parent of some span, has not come."""
    max_wait: Duration = 300.0
    """A trace is read this long after its first span, whatever is missing."""
    max_held: Size = 256 * 2**20
    """Budget for the raw spans held; at the limit senders are asked to come back later."""
