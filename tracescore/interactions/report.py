"""The log line that matters most on day one: what came, what of it could be scored, and what is missing.

Nothing is more common than an instrumentation that records no content, and nothing is more puzzling than a
scorer that then stays silent. So the line names the switch that turns the content on.
"""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter

from tracescore import logs
from tracescore.config import InteractionsConfig
from tracescore.interactions.exclusions import MADE_BY
from tracescore.interactions.reader import Reading
from tracescore.interactions.worth import REASONS, EmptyReason
from tracescore.model import Clock, Interaction, State

_log = logging.getLogger("tracescore.interactions")

_NAMED = 3
"""Services without content that the line names at most, those with the most interactions first."""
_EVERY = 60.0
"""Seconds between two lines while traffic flows; the first comes with the first trace."""


REASON_ADVICE: dict[EmptyReason, str] = {
    "no_answering_call": "the traces hold model calls that rewrite a question or ask for tools, but none that answers; "
    "is the call that answers instrumented?",
    "bare_retrieval": "the traces hold retrievals, no answer; instrument the model client, or put the answer on a span",
    "tools_only": "the traces hold tool calls but no answer; instrument the agent or the model client too",
    "indexing": "the traces hold embeddings and index writes only; send traces of questions",
    "no_question_and_answer": "the traces hold chains or agents without a question and an answer; set input.value and "
    "output.value on the outermost, or name the keys that hold them in interactions.mappings",
    "no_step": "no span says what it did; instrument the model client (docs/instrument.md), or set "
    "openinference.span.kind (CHAIN, LLM, RETRIEVER, ...), or name spans and keys in interactions.mappings",
    "evaluators": "the traces hold spans of evaluators only; send those of the app",
    "spans_missing": "log records arrived without their spans; send traces too, from the same process",
}
"""What to do about traces that hold no interaction."""
NO_MARKER_ADVICE = (
    "no trace holds a span of a GenAI convention; instrument the model client (docs/instrument.md), or set "
    "openinference.span.kind, input.value and output.value, or name your keys in interactions.mappings"
)
FIELDS = ("question", "answer", "contexts")
"""Fields of an interaction for which users may name keys of their own."""


def own_keys(settings: InteractionsConfig) -> tuple[str, ...]:
    """All keys that the user named; a trace that holds one is worth reading, whatever convention it follows."""
    return tuple(key for mapping in settings.own for key in mapping.keys)


class Report:
    """Counts what was read and says it once a minute, only when something came."""

    def __init__(
        self,
        settings: InteractionsConfig,
        registry: CollectorRegistry,
        clock: Clock,
        switch: Callable[[str, str], str],
        unmarked: Callable[[], int] = lambda: 0,
    ) -> None:
        """`switch` names, for a convention and an instrumentation, the settings that make it record content.

        `unmarked` counts the traces so far that were never read, for want of a GenAI marker.
        """
        self._clock, self._switch, self._unmarked = clock, switch, unmarked
        self._own_keys = {field: {key for one in settings.own for key in getattr(one, field)} for field in FIELDS}
        self._mapped = Counter(
            "tracescore_interactions_own_keys",
            "Interactions by whether one of your keys gave the field; `no` alone hints at a typo.",
            ["field", "found"],
            registry=registry,
        )
        for field, keys in self._own_keys.items():
            for found in ("yes", "no") if keys else ():
                self._mapped.labels(field, found)
        self._set_aside = Counter(
            "tracescore_interactions_set_aside",
            "Spans and events of evaluators and of the judge, which are never read as an app's work.",
            ["made_by"],
            registry=registry,
        )
        for maker in MADE_BY:
            self._set_aside.labels(maker)
        self._empty = Counter(
            "tracescore_interactions_none",
            "Traces with GenAI spans that held no interaction when first read, by reason.",
            ["reason"],
            registry=registry,
        )
        for reason in REASONS:
            self._empty.labels(reason)
        self._reasons: Tally[EmptyReason] = Tally()
        self._next = 0.0
        self._spans = 0
        self._states: Tally[State] = Tally()
        self._silent: Tally[tuple[str, str]] = Tally()
        self._misspelt = ""
        self._marked = False
        """Whether any trace with a marker has come."""
        self._silent_services: Tally[str] = Tally()
        self.genai_spans = Counter("tracescore_interactions_genai_spans", "GenAI spans read.", registry=registry)

    @property
    def advice(self) -> str:
        """What to do: about the instrumentation that most lacks content, or about traces without any interaction."""
        if not self._marked:
            return NO_MARKER_ADVICE if self._unmarked() else ""
        if not self._silent and self._misspelt:
            return logs.plain(self._misspelt)
        if not self._silent and self._reasons and not self._states:
            return REASON_ADVICE[self._reasons.most_common(1)[0][0]]
        if not self._silent:
            return ""
        convention, instrumentation = self._silent.most_common(1)[0][0]
        switch = self._switch(convention, instrumentation)
        return f"{logs.plain(instrumentation) or convention} records no content; turn it on with {switch}"

    def trace(self, reading: Reading, interactions: list[Interaction], *, again: bool = False) -> None:
        """Takes in one trace that was read and its new interactions; `again`: it had been read before, with less."""
        if not self._marked:  # the line comes with it, whatever was said of others
            self._marked, self._next = True, 0.0
        self.genai_spans.inc(reading.genai_spans)
        self._spans += reading.genai_spans
        for maker, count in reading.set_aside.items():
            self._set_aside.labels(maker).inc(count)
        self._misspelt = self._misspelt or reading.misspelt
        if reading.reason is not None and not again:
            self._reasons[reading.reason] += 1
            self._empty.labels(reading.reason).inc()
        for interaction in interactions:
            self._states[interaction.state] += 1
            if interaction.state == "content_not_captured":
                self._silent[interaction.convention, interaction.instrumentation] += 1
                self._silent_services[interaction.service] += 1
            self._count_own_keys(interaction)

    def _count_own_keys(self, interaction: Interaction) -> None:
        for field, keys in self._own_keys.items():
            if keys:
                found = interaction.found.get(field)
                self._mapped.labels(field, "yes" if found and found.key in keys else "no").inc()

    def tick(self) -> None:
        """Logs the line when it is due and something came."""
        if self._clock() >= self._next:
            self.say()

    def say(self) -> None:
        """Logs the line if anything came since the last one."""
        unread = 0 if self._marked else self._unmarked()
        if not self._spans and not self._states and not self._reasons and not unread:
            return
        states = {"complete": self._states["complete"], **dict(sorted(self._states.items()))}
        counts = " ".join(f"{state}={count}" for state, count in states.items())
        counts += "".join(f" {reason}={count}" for reason, count in sorted(self._reasons.items()))
        counts += f" no_marker={unread}" if unread else ""
        advice, named = self.advice, self._silent_services.most_common(_NAMED)
        services = f' services="{", ".join(logs.plain(name) for name, _ in named)}"' if named else ""
        _log.log(
            logging.WARNING if advice else logging.INFO,
            "genai_spans=%d interactions=%d %s%s",
            *(self._spans, self._states.total(), counts, services + (f' advice="{advice}"' if advice else "")),
        )
        self._next = self._clock() + _EVERY
        self._spans, self._misspelt = 0, ""
        self._states.clear()
        self._silent.clear()
        self._silent_services.clear()
        self._reasons.clear()
