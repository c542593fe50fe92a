"""Releases against one another: which two, over which hours, by which judge, and with what interval."""

from __future__ import annotations

from deploy.prometheus.releases import CHANGE, PAIR
from deploy.prometheus.streams import APP, TARGET, Case, Series, case, named, scores
from tracescore.drift.comparing import compare
from tracescore.drift.weighted_sums import WeightedSums

SERVICE = TARGET | {key: APP[key] for key in ("service_name", "deployment_environment")}
FIRST, SECOND, THIRD = "1.0", "2.0", "3.0"
Scored = dict[int, dict[float, int]]
"""Hour -> score -> how many."""
NOTHING: dict[str, float | None] = {f"count({CHANGE}:mean)": None}


def version(name: str, replica: str = "a") -> dict[str, str]:
    """Labels of a release, as a replica shows it."""
    return {"service_version": name, "pod": replica, "instance": f"10.0.0.{ord(replica)}:9464"}


def used(name: str, first_seen: int, *, last: int = 0, minutes: int = 1000) -> Series:
    """What a replica says of the use of a release; `last`: when it was used last, if it is in use no more."""
    labels, moments = SERVICE | version(name), {"first_seen": first_seen, "used": last or 100_000}
    told = {f"tracescore_drift_release_{what}_timestamp_seconds": at for what, at in moments.items()}
    told["tracescore_drift_release_in_use"] = int(not last)
    return {named(metric, labels): f"{value}x{minutes}" for metric, value in told.items()}


def judged(*fingerprints: str, each: int = 1000) -> Series:
    """The judge that all replicas have: one fingerprint after the other, for so many minutes each."""
    labels = TARGET | {"judge": "gpt", "model": "gpt-4"}
    return {
        named("tracescore_judge_info", labels | {"epoch": str(epoch), "fingerprint": fingerprint}): (
            f"{f'_x{epoch * each} ' if epoch else ''}1x{each - 1} stale"
        )
        for epoch, fingerprint in enumerate(fingerprints)
    }


def live(
    name: str,
    score: float,
    *phases: int,
    replica: str = "a",
    ends: bool = False,
    restarts: bool = False,
    **others: str,
) -> Series:
    """A score a minute of a release in every second phase of minutes."""
    labels = version(name, replica) | others
    return scores("completeness", score, *phases, ends=ends, restarts=restarts, labels=labels)


def changed(traffic: str, release: Scored, before: Scored) -> dict[str, float | None]:
    """What the product itself finds of the second release less the first."""
    found = compare(*({hour: _sums(of) for hour, of in scored.items()} for scored in (release, before)))
    if found is None:
        raise ValueError("too few scores for an expectation")
    where = f'{{service_version="{SECOND}", before="{FIRST}", traffic="{traffic}", measure="completeness"}}'
    values = {"mean": found.difference, "lower": found.lower, "upper": found.upper}
    return {f"sum({CHANGE}:{name}{where})": value for name, value in values.items()}


def _sums(scored: dict[float, int]) -> WeightedSums:
    sums = WeightedSums()
    for score, count in scored.items():
        sums = sums.merged(WeightedSums().plus(score, 1.0, times=count))
    return sums


def pair(release: str, before: str) -> dict[str, float | None]:
    """Expectation of which two are compared."""
    return {f'sum({PAIR}{{service_version="{release}", before="{before}"}})': 1, f"count({PAIR})": 1}


def release_cases() -> list[Case]:
    """All of them."""
    return [
        case(
            "releases side by side are compared within the hours of both, over all replicas",
            live(FIRST, 0.75, 5, 116, 10),
            live(SECOND, 0.5, 65, 30, 30),
            live(SECOND, 0.25, 65, 30, 30, replica="b"),
            used(FIRST, 100),
            used(SECOND, 3900),
            judged("a"),
            minute=125,
            values=changed("side_by_side", {0: {0.5: 30, 0.25: 30}}, {0: {0.75: 60}}) | pair(SECOND, FIRST),
            firing=[],
        ),
        case(
            "releases one after the other are compared by all their hours",
            live(FIRST, 0.75, 5, 50, 70),
            live(SECOND, 0.5, 65, 50, 20),
            used(FIRST, 100, last=3600),
            used(SECOND, 3900),
            judged("a"),
            minute=125,
            values=changed("adjacent", {1: {0.5: 50}}, {0: {0.75: 50}}),
            firing=[],
        ),
        case(
            "after a rollback the release that runs again is held against the one that was rolled back",
            used(FIRST, 100),
            used(SECOND, 3900, last=7200),
            minute=5,
            values=pair(FIRST, SECOND),
            firing=[],
        ),
        case(
            "of many releases at once the newest is held against the newest before it",
            used(FIRST, 100),
            used(THIRD, 300),
            used(SECOND, 200),
            used("0.9", 50, last=90_000),
            minute=5,
            values=pair(THIRD, SECOND),
            firing=[],
        ),
        case(
            "releases that a judge scored before and after it moved are not compared",
            live(FIRST, 0.75, 5, 50, 70),
            live(SECOND, 0.5, 125, 50, 20),
            used(FIRST, 100, last=3600),
            used(SECOND, 7500),
            judged("a", "b", each=90),
            minute=185,
            values=NOTHING | pair(SECOND, FIRST),
            firing=[],
        ),
        case(
            "releases that judges of two names scored are not compared",
            live(FIRST, 0.75, 5, 115, 10),
            live(SECOND, 0.5, 5, 115, 10, judge="other"),
            used(FIRST, 100, last=3600),
            used(SECOND, 3900),
            judged("a"),
            {named("tracescore_judge_info", TARGET | {"judge": "other", "model": "m", "fingerprint": "b"}): "1x1000"},
            minute=125,
            values=NOTHING,
            firing=[],
        ),
        *_running_hours(),
        *_moves(),
    ]


def _running_hours() -> list[Case]:
    """What a release scored since the hour began is in its comparison."""
    return [
        case(
            f"a release went out {words}",
            live(FIRST, 0.75, 1, until, 100),
            live(SECOND, 0.5, since, 151 - since, 100),
            used(FIRST, 100),
            used(SECOND, 7200),
            judged("a"),
            minute=150,
            values=changed(traffic, release, before) | pair(SECOND, FIRST),
            firing=[],
        )
        for words, until, since, traffic, release, before in (
            ("25 minutes ago, to all", 125, 126, "adjacent", {2: {0.5: 25}}, {0: {0.75: 120}, 2: {0.75: 5}}),
            (
                "30 minutes ago, to half of the traffic",
                *(150, 121, "side_by_side"),
                {2: {0.5: 30}},
                {1: {0.75: 120}, 2: {0.75: 30}},
            ),
            (
                "before the hour began, to half of the traffic",
                *(150, 96, "side_by_side"),
                {1: {0.5: 25}, 2: {0.5: 30}},
                {0: {0.75: 60}, 1: {0.75: 60}, 2: {0.75: 30}},
            ),
        )
    ]


def _moves() -> list[Case]:
    """What a replica's counters do when it is new: what is new in them counts, and what is not does not."""
    begun = scores("completeness", 0.5, 0, 1, 10, a_minute=2**15, born=130, labels=version(SECOND, "b"))
    return [
        *(
            case(
                f"forty scores of a new release stand in its first scrape, {words}",
                live(FIRST, 0.75, 1, 120, 100),
                scores("completeness", 0.5, 0, 1, 150, a_minute=40, born=born, labels=version(SECOND)),
                used(FIRST, 100, last=7200),
                used(SECOND, 7500),
                judged("a"),
                minute=130,
                values=changed(traffic, {hour: {0.5: 40}}, {0: {0.75: 60}, 1: {0.75: 60}}),
                firing=[],
            )
            for words, born, traffic, hour in (("now", 130, "adjacent", 2), ("in the past hour", 90, "side_by_side", 1))
        ),
        case(
            "a replica that goes on from its counters under another address adds nothing by that",
            live(FIRST, 0.75, 1, 125, 100),
            live(SECOND, 0.5, 65, 40, 20, ends=True),
            begun,
            used(FIRST, 100, last=7200),
            used(SECOND, 3900),
            judged("a"),
            minute=150,
            values=changed("side_by_side", {1: {0.5: 40}}, {0: {0.75: 60}, 1: {0.75: 60}, 2: {0.75: 5}}),
            firing=[],
        ),
        case(
            "a replica that begins at nought again adds what it scores from then on",
            live(FIRST, 0.75, 5, 50, 100),
            live(SECOND, 0.5, 65, 20, 5, 30, 60, restarts=True),
            used(FIRST, 100, last=3600),
            used(SECOND, 3900),
            judged("a"),
            minute=120,
            values=changed("adjacent", {1: {0.5: 50}}, {0: {0.75: 50}}),
            firing=[],
        ),
    ]


def week_cases() -> list[Case]:
    """A release is held to what it scored in seven days; hours are looked at once each."""
    day = 24 * 60
    return [
        case(
            "what a release scored more than seven days ago is forgotten",
            live(FIRST, 0.25, 1, 3 * day - 60, 1),
            live(FIRST, 0.75, 3 * day + 1, day, 7 * day, replica="b"),
            live(SECOND, 0.5, 10 * day - 299, 300, 300),
            used(FIRST, 100, last=4 * day * 60, minutes=11 * day),
            used(SECOND, 10 * day * 60 - 18_000, minutes=11 * day),
            judged("a", each=11 * day),
            minute=10 * day,
            values=changed("adjacent", {2: {0.5: 300}}, {1: {0.75: day}}),
            firing=[],
        ),
    ]
