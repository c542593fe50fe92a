"""Which releases are compared, over which scores, and what is said of them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.results import NOW, SettableClock, result
from tests.states import reread
from tests.web_results import ask, pages
from tracescore.drift.comparing import ReleaseComparison, compare, limits
from tracescore.drift.release_use import MOST, ReleasePair, ReleaseUse
from tracescore.drift.releases import Releases, Stream
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.model import Score

pytestmark = pytest.mark.anyio

HOUR = 3_600.0
SHOP = "shop", "production"
STREAM = Stream("completeness", "")


class Rig:
    """Releases that are shown scores, at moments of the test's choice."""

    def __init__(self) -> None:
        self.registry, self.clock = CollectorRegistry(), SettableClock()
        self.releases = Releases(self.registry, self.clock)
        self.numbers = count(1)
        self.random = np.random.default_rng(5)

    async def score(self, release: str, good: float, times: int = 40, *, epoch: int = 0, judge: str = "j", **fields):
        """So many scores of 0 and 1, of which the part `good` is 1, spread over the hour."""
        for place in self.random.permutation(times):
            at = self.clock.now + 10
            made = result(
                Score("completeness", float(place < round(good * times))),
                number=next(self.numbers), ended=at, finished=at, release=release, **fields,
            )  # fmt: skip
            await self.releases.export(replace(made, judge=judge, epoch=epoch))

    def hours(self, number: float) -> None:
        self.clock.now += number * HOUR

    def pair(self) -> ReleasePair | None:
        return self.releases.use(SHOP).pair

    def found(self, release: str, before: str, hours: int = 168) -> ReleaseComparison | None:
        return self.releases.compared(SHOP, ReleasePair(release, before), hours).get(STREAM)

    def gauges(self) -> dict[tuple[str, str, str], float]:
        name = "tracescore_drift_release_change_ratio"
        samples = [s for family in self.registry.collect() for s in family.samples if s.name == name]
        return {(s.labels["service_version"], s.labels["before"], s.labels["traffic"]): s.value for s in samples}


async def test_releases_of_the_same_hours_are_compared_side_by_side_and_a_bad_hour_of_both_is_nobodys_fault() -> None:
    rig = Rig()
    for quality, old, new in ((0.9, 100, 10), (0.5, 20, 80), (0.9, 100, 10)):  # the new one ran most in the bad hour
        await rig.score("1", quality, old)
        await rig.score("2", quality, new)
        rig.hours(1)
    found = rig.found("2", "1")
    assert found is not None
    assert found.traffic == "side_by_side"
    assert found.difference == pytest.approx(0, abs=0.01)
    assert found.verdict == "no difference seen"
    assert rig.gauges() == {("2", "1", "side_by_side"): pytest.approx(found.difference)}


async def test_releases_one_after_the_other_are_compared_by_all_their_hours_though_they_met_for_some_minutes() -> None:
    rig = Rig()
    for _ in range(5):
        await rig.score("1", 0.9)
        rig.hours(1)
    await rig.score("1", 0.9, 20)
    await rig.score("2", 0.6, 20)
    for _ in range(5):
        rig.hours(1)
        await rig.score("2", 0.6)
    found = rig.found("2", "1")
    assert found is not None
    assert (found.traffic, found.verdict) == ("adjacent", "worse")
    assert found.difference == pytest.approx(-0.3)
    assert found.release.effective_count == 220


@pytest.mark.parametrize(("change"), [{"epoch": 1}, {"judge": "renamed"}])
async def test_releases_are_never_compared_over_two_judges_or_epochs(change: dict[str, object]) -> None:
    rig = Rig()
    await rig.score("1", 0.9)
    rig.hours(1)
    await rig.score("2", 0.6, **change)  # type: ignore[arg-type]
    assert rig.pair() == ReleasePair("2", "1")
    assert rig.found("2", "1") is None
    assert rig.gauges() == {}
    await rig.score("1", 0.7, **change)  # type: ignore[arg-type]
    found = rig.found("2", "1")
    assert found is not None
    assert found.difference == pytest.approx(-0.1)


async def test_right_after_a_rollback_the_release_that_runs_again_is_held_against_the_one_that_went() -> None:
    rig = Rig()
    await rig.score("1", 0.9, 60)
    rig.hours(1)
    await rig.score("2", 0.5, 30)
    assert rig.pair() == ReleasePair("2", "1")
    await rig.score("1", 0.9, 20)
    assert rig.pair() == ReleasePair("1", "2")
    (key,) = rig.gauges()
    assert key[:2] == ("1", "2")


async def test_canaries_do_not_evict_each_other_nor_the_release_that_most_answers_are_of() -> None:
    rig = Rig()
    for name in [str(number) for number in range(12)] * 3:
        await rig.score("stable", 0.9, 20)
        await rig.score(f"canary-{name}", 0.8, 2)
        if name == "11":
            rig.hours(1)
    assert {f"canary-{n}" for n in range(12)} < set(rig.releases.use(SHOP).known)
    assert rig.pair() == ReleasePair("canary-11", "canary-10")
    for _ in range(8):
        await rig.score("stable", 0.9, 50)
        await rig.score("canary-3", 0.8, 10)
    assert rig.pair() == ReleasePair("canary-3", "stable")


def test_a_version_of_every_request_evicts_no_release_in_use() -> None:
    use = ReleaseUse()
    for number in range(10 * MOST):
        use.note("stable", NOW)
        use.note(f"request-{number}", NOW)
    assert len(use.known) == MOST
    assert use.in_use("stable")


async def test_a_rare_canary_is_in_use_between_two_of_its_answers() -> None:
    rig = Rig()
    for _ in range(3):
        await rig.score("1", 1.0, 99)
        await rig.score("2", 1.0, 1)
    await rig.score("1", 1.0, 99)
    assert rig.pair() == ReleasePair("2", "1")


async def test_a_release_that_was_mended_is_not_held_to_what_it_was_a_week_ago() -> None:
    rig = Rig()
    await rig.score("1", 0.9, 100)
    await rig.score("2", 0.2, 100)
    rig.hours(6 * 24)
    await rig.score("1", 0.9, 100)
    await rig.score("2", 0.9, 100)
    then, day = rig.found("2", "1"), rig.found("2", "1", 24)
    assert then is not None
    assert then.difference < -0.3
    assert day is not None
    assert day.difference == 0
    rig.hours(24)
    await rig.score("2", 0.9, 1)
    now = rig.found("2", "1")
    assert now is not None
    assert now.difference == pytest.approx(0, abs=0.01)


async def test_answers_of_one_conversation_count_as_one() -> None:
    alone, together = Rig(), Rig()
    for number in range(30):
        for release in "12":
            await alone.score(release, 1.0, 4)
            await together.score(release, 1.0, 4, conversation_id=f"c{number}")
    found = [rig.found("2", "1") for rig in (alone, together)]
    assert [each and round(each.release.effective_count) for each in found] == [120, 30]


async def test_a_restart_in_between_makes_no_difference() -> None:
    rig, other = Rig(), Rig()
    await rig.score("1", 0.9, 30, conversation_id="c")
    await rig.score("2", 0.5, 30)
    other.releases.resume(reread(rig.releases.state()))
    assert other.releases.state() == rig.releases.state()
    for each in (rig, other):
        await each.score("1", 0.9, 5, conversation_id="c")
    assert other.gauges() == rig.gauges()


async def test_without_twenty_scores_of_each_there_is_no_number() -> None:
    rig = Rig()
    await rig.score("1", 0.9, 30)
    await rig.score("2", 0.5, 19)
    assert rig.found("2", "1") is None
    await rig.score("2", 0.5, 1)
    assert rig.found("2", "1") is not None


def test_for_zeros_and_ones_the_limits_are_those_of_wilson_and_newcombe() -> None:
    """Newcombe 1998, table II, example (a): 56/70 against 48/80 gives 0.2000 (0.0524 to 0.3339)."""
    found = compare(*({0: WeightedSums(n, k, n, k, k)} for n, k in ((70, 56), (80, 48))))
    assert found is not None
    assert (found.difference, found.lower, found.upper) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
    wilson = limits(WeightedSums(10.0 * 10, 1.0 * 10, 100, 10, 10))
    assert wilson is not None
    part = 1.96**2 / 100
    half = math.sqrt(part * 0.09 + part**2 / 4) / (1 + part)
    assert (wilson.lower, wilson.upper) == pytest.approx(((0.1 + part / 2) / (1 + part) - half,
                                                          (0.1 + part / 2) / (1 + part) + half))  # fmt: skip


async def test_the_page_shows_the_answer_and_any_two_can_be_chosen() -> None:
    rig = Rig()
    for name, quality in (("1", 0.9), ("2", 0.8), ("3<b>", 0.4)):
        await rig.score(name, quality, 60)
    app = pages(releases=rig.releases)
    await app.export(result())
    service = (await ask(app, "/services/shop")).body
    assert "3&lt;b&gt;</bdi> less <bdi>2" in service
    assert "of this process" in service
    for shown in (service, (await ask(app, "/")).body):
        assert "Release 3&lt;b&gt; is worse than 2 in completeness" in shown
    page = (await ask(app, "/releases", query="service=shop&before=1&release=2")).body
    assert "<bdi>2</bdi> shows no difference from <bdi>1</bdi>" in page
    assert "no difference seen" in page
    answered = json.loads(
        (await ask(app, "/api/v1/releases", query="service=shop&environment=production&hours=24")).body
    )
    assert (answered["release"], answered["before"], answered["hours"]) == ("3<b>", "2", 24)
    assert answered["measures"][0]["difference"] == pytest.approx(-0.4)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "service: the name of one expected"),
        ("service=other", "service 'other': not known; there are shop in production"),
        ("service=shop&before=1", "before and release: two releases expected"),
        ("service=shop&before=1&release=9", "release '9' of 'shop': not known; there are 2, 1"),
        ("service=shop&hours=0", "hours: 1 to 168 expected; got '0'"),
    ],
)
async def test_what_cannot_be_compared_is_refused_with_what_can(query: str, said: str) -> None:
    rig = Rig()
    await rig.score("1", 0.9, 2)
    await rig.score("2", 0.9, 2)
    refused = await ask(pages(releases=rig.releases), "/api/v1/releases", query=query)
    assert refused.status == 400
    assert said in json.loads(refused.body)["error"]
