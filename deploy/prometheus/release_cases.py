"""Releases against one another: which two, over which hours, by which judge, and with what interval."""

from __future__ import annotations

from deploy.prometheus.releases import CHANGE, PAIR
from deploy.prometheus.streams import APP, TARGET, Case, Series, case, named, scores
from tracescore.drift.comparing import compare
from tracescore.drift.weighted_sums import WeightedSums

SERVICE = TARGET | {key: APP[key] for key in ("service_name", "deployment_environment")}
FIRST, SECOND, THIRD = "1.0", "2.0", "3.0"
NOTHING: dict[str, float | None] = {f"count({CHANGE}:mean)": None}


def version(name: str, replica: str = "a") -> dict[str, str]:
    """Labels of a release, as a replica shows it."""
    return {"service_version": name, "pod": replica, "instance": f"10.0.0.{ord(replica)}:9464"}


def used(name: str, first_seen: int, *, last: int = 0) -> Series:
    """What a replica says of the use of a release; `last`: when it was used last, if it is in use no more."""
    labels, moments = SERVICE | version(name), {"first_seen": first_seen, "used": last or 100_000}
    told = {f"tracescore_drift_release_{what}_timestamp_seconds": at for what, at in moments.items()}
    told["tracescore_drift_release_in_use"] = int(not last)
    return {named(metric, labels): f"{value}x1000" for metric, value in told.items()}


def judged(*fingerprints: str, each: int = 1000) -> Series:
    """The judge that all replicas have: one fingerprint after the other, for so many minutes each."""
    labels = TARGET | {"judge": "gpt", "model": "gpt-4"}
    return {
        named("tracescore_judge_info", labels | {"epoch": str(epoch), "fingerprint": fingerprint}): (
            f"{f'_x{epoch * each} ' if epoch else ''}1x{each - 1} stale"
        )
        for epoch, fingerprint in enumerate(fingerprints)
    }


def live(name: str, score: float, *phases: int, replica: str = "a", **others: str) -> Series:
    """A score a minute of a release in every second phase of minutes."""
    return scores("completeness", score, *phases, labels=version(name, replica) | others)


def changed(traffic: str, release: dict[float, int], before: dict[float, int]) -> dict[str, float | None]:
    """What the product itself finds of the second release less the first; of each, score -> how many."""
    found = compare(*({0: _sums(scored)} for scored in (release, before)))
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
            values=changed("side_by_side", {0.5: 30, 0.25: 30}, {0.75: 60}) | pair(SECOND, FIRST),
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
            values=changed("adjacent", {0.5: 50}, {0.75: 50}),
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
    ]
