"""Settings of how tracescore puts spans together into traces."""

from tracescore.config.types import Duration, Section, Size


class AssemblyConfig(Section):
    """When tracescore considers a trace complete and reads it."""

    idle: Duration = 5.0
    """tracescore reads a trace that has its root span once nothing more has arrived for this long."""
    orphan_idle: Duration = 30.0
    """The same for a trace whose root, or the parent of one of its spans, is missing."""
    max_wait: Duration = 300.0
    """tracescore reads a trace no later than this after its first span."""
    max_held: Size = 256 * 2**20
    """Memory for the spans of open traces. When it is full, tracescore asks senders to come back later; when it is half
    full, it asks any sender that alone holds half."""
