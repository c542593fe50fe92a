"""When a gold set is to be run: by the clock, when that was missed, and for a new release.

A state machine with the time given. In a time zone with summer time a moment that does not exist moves to the next
that does, and one that comes twice counts once (as in Debian's cron).
"""

from datetime import datetime

from cronsim import CronSim

from tracescore.config.gold import GoldConfig, zone_of
from tracescore.gold.results import Trigger

_LATE = 60.0
"""Seconds after its moment from which a run is called overdue."""
_AGAIN_AFTER = 300.0
_RELEASES_APART = 1_800.0
"""Seconds between two runs for new releases: an app may put a commit, or a request, into its version."""
MOST_RELEASES = 1_000
"""Releases remembered, so that they start no second run."""


class Schedule:
    """When one gold set runs. `due` says what is to be done, `began` that it is being done. Times in Unix seconds."""

    def __init__(self, settings: GoldConfig, last_success: float | None, releases: list[str], now: float) -> None:
        """`last_success` is when the last good run began, `releases` are those seen before, oldest first."""
        self._settings = settings
        self._zone = zone_of(settings.timezone)
        self._known = dict.fromkeys(releases)
        self._new = False
        self._not_before = 0.0
        """When a run for a new release may begin."""
        self._again: float | None = None
        self.release: str = settings.release or (releases[-1] if releases else "unknown")
        """The release that answers, as far as is known."""
        self._now = now
        self._next = self.after(now if last_success is None else min(last_success, now))
        self._never = last_success is None and settings.schedule is not None
        self.expected = self._next
        """When a good run should begin next: in the past while one is overdue. None without a schedule."""

    def after(self, moment: float) -> float | None:
        """The first moment of the schedule later than `moment`; None without a schedule, or when none ever comes."""
        if self._settings.schedule is None:
            return None
        found = next(CronSim(self._settings.schedule, datetime.fromtimestamp(moment, self._zone)), None)
        return found.timestamp() if found else None

    def observe(self, service: str, release: str) -> bool:
        """Is told of live traffic; whether it is a release of the app that was never seen before."""
        if service != self._settings.service or release in ("", "unknown"):
            return False
        if self._settings.release is None:
            self.release = release
        known = release in self._known
        self._known.pop(release, None)
        self._known[release] = None  # at the end: the one that was not seen for longest gives way
        if known:
            return False
        while len(self._known) > MOST_RELEASES:
            del self._known[next(iter(self._known))]
        self._new = self._new or self._settings.on_release
        return True

    @property
    def awaits_release_run(self) -> bool:
        """Whether a run for a new release is due or will be; it is of whichever release is the newest then."""
        return self._new

    def due(self, now: float) -> Trigger | None:
        """Why a run is to begin now; None: it is not."""
        if now < self._now - _LATE:
            self._set_back(now)
        self._now = now
        if self._new and now >= self._not_before:
            return "release"
        if self._never:
            return "overdue"
        if self._again is not None and now >= self._again:
            return "again"
        if self._next is None or now < self._next:
            return None
        return "overdue" if now - self._next > _LATE else "schedule"

    def _set_back(self, now: float) -> None:
        """The clock was ahead and is right again: what is due next must not wait until it is as late as that."""
        self._next = self.after(now)
        if self.expected is not None and self._next is not None:
            self.expected = min(self.expected, self._next)
        if self._again is not None:
            self._again = min(self._again, now + _AGAIN_AFTER)
        self._not_before = min(self._not_before, now + _RELEASES_APART)

    def began(self, now: float) -> None:
        """A run begins; whatever asked for one has been heard."""
        if self._new:
            self._not_before = now + _RELEASES_APART
        self._new, self._never, self._again = False, False, None
        self._next = self.after(now)

    def unanswered(self, now: float) -> None:
        """A run ended without a single answer: the app may only be starting, so it is asked again before long."""
        self._again = now + _AGAIN_AFTER

    def succeeded(self, began: float) -> None:
        """A run that began then went well."""
        self.expected, self._never = self.after(began), False
        if self._next is not None and self.expected is not None:
            self._next = max(self._next, self.expected)  # whoever made that run
