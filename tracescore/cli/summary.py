"""What `serve` says once a minute while answers are scored: how good they were, service by service, in plain words."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter

from tracescore import logs
from tracescore.formulas import weighted_mean
from tracescore.model import Clock, Measure, Result, Unscored

_log = logging.getLogger("tracescore.service")

_EVERY = 60.0
"""Seconds between two summaries; the first comes with the first score."""
_MOST = 5
"""Services with a line of their own, those with the most interactions first."""


class MinuteSummary:
    """An exporter that logs. Results of an earlier process, which are shown again, are no news."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._since = clock()
        self._results: list[Result] = []
        self._timer: asyncio.TimerHandle | None = None

    async def export(self, result: Result) -> None:
        """Takes in one result; the first is said at once."""
        if 0.0 < result.finished < self._since:
            return
        self._results.append(result)
        if self._timer is None:
            self._say()

    async def close(self) -> None:
        """Says what is left; may be called twice."""
        if self._timer is not None:
            self._timer.cancel()
        self._say_all()

    def _say(self) -> None:
        """Says what came, and comes back after a minute, as long as something does."""
        came = bool(self._results)
        self._say_all()
        self._timer = asyncio.get_running_loop().call_later(_EVERY, self._say) if came else None

    def _say_all(self) -> None:
        services = Counter(result.interaction.service for result in self._results)
        for service, count in services.most_common(_MOST):
            told = said([result for result in self._results if result.interaction.service == service])
            _log.info('event=summary service="%s" interactions=%d said="%s"', logs.plain(service), count, told)
        if len(services) > _MOST:
            _log.info('event=summary said="and %d more services"', len(services) - _MOST)
        self._results.clear()


def said(results: list[Result]) -> str:
    """The means of the scores of one service, and how many evaluations gave none, and why."""
    scores: dict[Measure, tuple[list[float], list[float]]] = {}
    for result in results:
        for score in result.scores():
            values, weights = scores.setdefault(score.measure, ([], []))
            values.append(score.value)
            weights.append(result.interaction.weight)
    means = [f"{measure.replace('_', ' ')} {weighted_mean(*known):.2f}" for measure, known in scores.items()]
    line = ", ".join(means) or "no scores"
    reasons = Counter(each.reason for result in results for each in result.evaluations if isinstance(each, Unscored))
    if reasons:
        line += "; without a score: " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    return line
