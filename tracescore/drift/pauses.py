"""Planned changes: what a service scores meanwhile is no alarm, and what it scores afterwards is learned as normal."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from tracescore.config.types import Duration

LONGEST_WHY = 200
_LONGEST = 366 * 86_400.0

PauseState = tuple[str, float, float, str, bool]
"""What is kept of a pause: the service, and its four figures."""


class Pause(NamedTuple):
    """From when to when (Unix seconds), why, and whether it is over and what is normal is learned anew."""

    since: float
    until: float
    why: str
    over: bool = False


def until(text: str, now: float) -> float:
    """The end of a pause, in Unix seconds: a duration from `now` on, or a moment. ValueError says what is allowed."""
    try:
        return now + TypeAdapter(Duration).validate_python(text)
    except ValidationError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"until: a duration such as 2h or a time such as 2027-01-31T08:00Z expected; got {text[:40]!r}"
        ) from None
    moment = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if not now < moment <= now + _LONGEST:
        raise ValueError(f"until: a time within the next 366 days expected; got {text[:40]!r}")
    return moment


class Pauses:
    """The latest pause of each service."""

    def __init__(self) -> None:
        self.latest: dict[str, Pause] = {}

    def begin(self, service: str, now: float, until: float, why: str) -> None:
        """From `now` on, or going on with another end and another reason. ValueError without a reason."""
        if not why.strip() or len(why) > LONGEST_WHY or not why.isprintable():
            raise ValueError(f"why: one line of 1 to {LONGEST_WHY} characters expected; readers of the page see it")
        known = self.latest.get(service)
        since = known.since if known is not None and not known.over else now
        self.latest[service] = Pause(since, until, why.strip())

    def end(self, service: str, now: float) -> None:
        """Ends a pause early. ValueError where there is none."""
        known = self.latest.get(service)
        if known is None or known.over:
            raise ValueError(f"service: a paused one expected; got {service[:40]!r}")
        self.latest[service] = known._replace(until=now)

    def over(self, now: float) -> Iterator[str]:
        """The services of which a pause has ended since this was asked last."""
        for service, pause in list(self.latest.items()):
            if not pause.over and now >= pause.until:
                self.latest[service] = pause._replace(over=True)
                yield service

    def silent(self, service: str, at: float) -> bool:
        """Whether what ended `at` is neither tested nor learned: also what comes late of a pause that is over."""
        pause = self.latest.get(service)
        return pause is not None and at < pause.until

    def running(self, service: str) -> bool:
        """Whether a service is paused."""
        pause = self.latest.get(service)
        return pause is not None and not pause.over

    def state(self) -> tuple[PauseState, ...]:
        """What `resume` goes on from."""
        return tuple((service, *pause) for service, pause in self.latest.items())

    def resume(self, state: Iterable[PauseState]) -> None:
        """Goes on from what an earlier process had."""
        self.latest = {service: Pause(since, until, why, over) for service, since, until, why, over in state}
