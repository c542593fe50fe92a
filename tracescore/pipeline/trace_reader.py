"""The one way from the bytes of a trace to the interactions in it: for the service, a gold run and `inspect` alike."""

from collections.abc import Callable, Collection

from prometheus_client import CollectorRegistry

from tracescore.assembly import Assembly, assemble
from tracescore.config import Config, InteractionsConfig
from tracescore.interactions import MARKERS, Reading, read
from tracescore.interactions.report import own_keys
from tracescore.model import Clock, Interaction, RawTrace, Trace
from tracescore.otlp.decode import decode
from tracescore.otlp.files import read_json
from tracescore.redaction import Redactor


class TraceReader:
    """RawTrace -> Trace -> Reading, as one configuration wants it; what is excluded is in the reading as a count.

    `attributes` are those that the interactions are to carry for the rules of sampling. Pure but for the counts of
    `redactor`, which `interactions` goes through.
    """

    def __init__(
        self, settings: InteractionsConfig, attributes: Collection[str] = (), redactor: Redactor | None = None
    ) -> None:
        self._settings, self._attributes, self._redactor = settings, attributes, redactor

    def read(self, raw: RawTrace) -> tuple[Trace, Reading]:
        """The trace, and what was found in it."""
        trace = decode(raw)
        return trace, read(trace, self._settings, self._attributes)

    def read_json(self, content: bytes) -> tuple[Trace, Reading]:
        """The same of the trace that OTLP JSON holds; DecodeError where it is none."""
        return self.read(assemble(*read_json(content)))

    def interactions(
        self, raw: RawTrace, placed: Callable[[Interaction], Interaction] = lambda each: each
    ) -> list[Interaction]:
        """The interactions of the trace, each `placed` in its conversation, and redacted where that is wanted."""
        found = list(map(placed, self.read(raw)[1].interactions))
        return [self._redactor.interaction(each) for each in found] if self._redactor else found


def build_assembly(config: Config, registry: CollectorRegistry, clock: Clock) -> Assembly:
    """What puts together the traces worth reading: those with a marker of a convention or a key of the user's own."""
    markers = MARKERS + tuple(key.encode() for key in own_keys(config.interactions))
    return Assembly(config.assembly, markers, registry, clock)
