"""The series behind the score metrics, and the one cap on how many there may be.

Label values come from telemetry. They are cleaned and cut, and beyond the cap they become `other`: a service that
puts a request id into its version costs a flood of scores in `other`, not the memory of everybody's Prometheus.

Where the cap is reached, every service has a budget: an equal share of it. What gives way to a new label set is dropped
and moves nothing: what it counted is in no other series, its later scores are counted under `other`, and should it come
back it starts at 0. So no counter ever jumps; it rises, or it is gone. In this order there give way

1. the label set that has been unused for longest, once that is longer than a window;
2. something of a service that has more than its budget, for one that would not have more than its own: its oldest
   release, or where it has one alone, the slice of it that has been unused for longest;
3. the oldest release of the service itself, for a newer one. One that gave way comes back only for a release that has
   not been used for a quarter of an hour: during a rollout two releases must not drive each other out in turn. And at
   most four releases of a service that are in use give way within a window;
4. slices of the release itself, for what is no slice.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tracescore.exporters.prometheus.series import Make, Series, SeriesState

OTHER = "other"
_RELEASE_IDLE = 900.0
_TURNS = 4
_MOST_GONE = 1_000

_Key = tuple[str, tuple[str, ...]]
"""A group of metrics, and label values: judge, service, environment, release, and what else there is."""
_Service = tuple[str, str]
_Release = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TableState:
    """What is kept: all series, the releases of every service by age, those that gave way, and when they did."""

    series: tuple[SeriesState, ...] = ()
    releases: tuple[_Release, ...] = ()
    gone: tuple[tuple[str, ...], ...] = ()
    turns: tuple[tuple[str, str, tuple[float, ...]], ...] = ()


@dataclass(slots=True)
class _Held:
    """The label sets of one service: of each release, the oldest release first; and what they cost."""

    releases: dict[str, OrderedDict[_Key, Series]] = field(default_factory=dict)
    cost: int = 0


class SeriesTable:
    """(group, label values) -> Series, at most `limit` Prometheus series in all.

    The first label value is the judge's name, ours and not the telemetry's; it stays when the others become `other`.
    """

    def __init__(self, limit: int, reserve: int, idle: float) -> None:
        """`reserve` series of the limit are kept for `other`; `idle`: seconds of a window."""
        self._limit, self._idle = max(0, limit - reserve), idle
        self._named: OrderedDict[_Key, Series] = OrderedDict()
        self._held: dict[_Service, _Held] = {}
        self._gone: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._turns: dict[_Service, list[float]] = {}
        """When releases in use gave way within the last window."""
        self._other: dict[_Key, Series] = {}
        self._cost = 0

    def get(self, group: str, labels: tuple[str, ...], make: Make, now: float) -> Series:
        """The series of a label set, or those of `other` when there is no room for new ones at `now`."""
        if labels == _folded(labels):
            return self._folded(group, labels, make)
        key = group, labels
        series = self._named.get(key)
        if series is None:
            series = make(labels)
            if not self._room(series, now):
                return self._folded(group, labels, make)
            self._keep(key, series)
        self._named.move_to_end(key)
        series.used = now
        return series

    def find(self, group: str, labels: tuple[str, ...]) -> Series | None:
        """The series of a label set if it has any; what has given way has none."""
        if (group, labels) in self._named or labels[1:4] in self._gone:
            return self._named.get((group, labels))
        return self._other.get((group, _folded(labels)))

    def group(self, group: str) -> Iterator[Series]:
        """The series of one group."""
        for table in (self._named, self._other):
            yield from (series for (name, _), series in table.items() if name == group)

    def __len__(self) -> int:
        """How many Prometheus series the table stands for."""
        return self._cost + sum(series.cost for series in self._other.values())

    # ---------------------------------------------------------------- over a restart

    def state(self) -> TableState:
        """What `resume` goes on from, the longest unused first."""
        named = (series.state(group, folded=False) for (group, _), series in self._named.items())
        other = (series.state(group, folded=True) for (group, _), series in self._other.items())
        releases = ((*service, name) for service, held in self._held.items() for name in held.releases)
        turns = ((*service, tuple(turns)) for service, turns in self._turns.items())
        return TableState((*named, *other), tuple(releases), tuple(self._gone), tuple(turns))

    def resume(self, state: TableState, make: Callable[[str], Make | None]) -> None:
        """Goes on from the series of an earlier process. `make` gives what builds a group's series, if there is one.

        Those for which there is no room any more are left out.
        """
        for service, environment, release in state.releases:
            self._held.setdefault((service, environment), _Held()).releases[release] = OrderedDict()
        for each in state.series:
            build, key = make(each.group), (each.group, each.labels)
            if build is None:
                continue
            series = build(each.labels)
            series.resume(each)
            if each.folded:
                self._other[key] = series
            elif self._cost + series.cost <= self._limit:
                self._keep(key, series)
                self._named.move_to_end(key)
        self._turns = {(service, environment): list(turns) for service, environment, turns in state.turns}
        self._gone = OrderedDict.fromkeys(state.gone)

    # ---------------------------------------------------------------- what gives way

    def _room(self, series: Series, now: float) -> bool:
        """Makes room for a label set, if it may have any."""
        while self._cost + series.cost > self._limit:
            leaving = self._leaving(series, now) if series.cost <= self._limit else []
            if not leaving:
                return False
            for key in leaving:
                self._drop(key)
        return True

    def _leaving(self, series: Series, now: float) -> list[_Key]:
        """What gives way to a label set next, see the module."""
        _, name, environment, release, *_ = series.labels
        service = name, environment
        key, oldest = next(iter(self._named.items()))
        if now - oldest.used > self._idle:
            return [key]
        own = self._held.get(service) or _Held()
        share = self._limit / len({*self._held, service})
        if own.cost + series.cost <= share:
            other = max(self._held, key=lambda each: self._held[each].cost)
            most = self._held[other]
            if most.cost > share:
                names = list(most.releases)
                return self._whole(other, names[0], now) if len(names) > 1 else _slices(most.releases[names[0]])
        before = self._older(own, (*service, release), now)
        if before is not None:
            return self._whole(service, before, now)
        return _slices(own.releases[release]) if series.live and release in own.releases else []

    def _older(self, own: _Held, release: _Release, now: float) -> str | None:
        """The release of the same service that gives way to this one, if there is one."""
        names = [name for name in own.releases if name != release[2]]
        if release in self._gone:
            names = [name for name in names if _unused(own.releases[name], now) > _RELEASE_IDLE]
        elif release[2] in own.releases:
            names = names[: list(own.releases).index(release[2])]
        return names[0] if names else None

    def _whole(self, service: _Service, name: str, now: float) -> list[_Key]:
        """All label sets of a release, if it may be dropped now."""
        held = self._held[service].releases[name]
        if _unused(held, now) <= _RELEASE_IDLE:
            turns = [at for at in self._turns.get(service, ()) if now - at <= self._idle]
            if len(turns) >= _TURNS:
                return []
            self._turns[service] = [*turns, now]
        return list(held)

    def _keep(self, key: _Key, series: Series) -> None:
        _, service, environment, release, *_ = key[1]
        held = self._held.setdefault((service, environment), _Held())
        held.releases.setdefault(release, OrderedDict())[key] = series
        held.cost += series.cost
        self._gone.pop((service, environment, release), None)
        self._named[key] = series
        self._cost += series.cost

    def _drop(self, key: _Key) -> None:
        _, service, environment, release, *_ = key[1]
        series, held = self._named.pop(key), self._held[service, environment]
        del held.releases[release][key]
        held.cost -= series.cost
        self._cost -= series.cost
        if not held.releases[release]:
            del held.releases[release]
            self._gone[service, environment, release] = None
            if len(self._gone) > _MOST_GONE:
                self._gone.popitem(last=False)
        if not held.releases:
            del self._held[service, environment]

    def _folded(self, group: str, labels: tuple[str, ...], make: Make) -> Series:
        folded = _folded(labels)
        if (group, folded) not in self._other:
            self._other[group, folded] = make(folded)
        return self._other[group, folded]


def _unused(release: OrderedDict[_Key, Series], now: float) -> float:
    return now - max(series.used for series in release.values())


def _slices(release: OrderedDict[_Key, Series]) -> list[_Key]:
    """The slice of a release that has been unused for longest; none where it has none."""
    slices = [(series.used, key) for key, series in release.items() if series.live is None]
    return [min(slices)[1]] if slices else []


def _folded(labels: tuple[str, ...]) -> tuple[str, ...]:
    return labels[0], *[OTHER] * (len(labels) - 1)
