"""What Prometheus sees of gold runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.gold_runs import JUDGE, runner, write_set
from tests.results import NOW, SettableClock
from tracescore.gold.results import ItemOutcome, Run, summary
from tracescore.gold.runner import GoldRunner
from tracescore.gold.series import GoldSeries

pytestmark = pytest.mark.anyio

WRONG: set[str] = set()
UNSCORED: set[str] = set()
ECHO = {"kind": "python", "callable": "tests.unit.test_gold_series:echo"}

Series = dict[str, dict[tuple[str, ...], float]]
"""Metric -> the values of its labels, but for those that every series has -> value."""


def echo(question: str) -> str:
    return "unscored: judge_quota" if question in UNSCORED else "no" if question in WRONG else question


@pytest.fixture(autouse=True)
def right() -> Iterator[None]:
    WRONG.clear()
    UNSCORED.clear()
    yield
    WRONG.clear()
    UNSCORED.clear()


def scraped(of: GoldRunner) -> Series:
    registry = CollectorRegistry()
    GoldSeries(of, registry)
    found: Series = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name not in ("gold_set", "judge", "hash")}
            assert sample.labels["gold_set"] == of.name
            assert sample.labels.get("judge", JUDGE) == JUDGE
            of_run = [labels.pop(name) for name in ("service_name", "service_version") if name in labels]
            key = (*of_run, *(value for _, value in sorted(labels.items())))
            assert key not in found.setdefault(sample.name, {})
            found[sample.name][key] = sample.value
    return found


async def ran(file: Path, clock: SettableClock, release: str, **settings: str) -> GoldRunner:
    of = runner(file, ECHO, clock, release=release, service="shop", **settings)
    clock.now += 60
    assert await of.run("hand")
    return of


async def test_every_release_shows_its_latest_good_run_and_changes_are_of_the_newest(tmp_path: Path) -> None:
    file, clock = write_set(tmp_path / "faq.jsonl", 12, tags=["prices"]), SettableClock()
    await ran(file, clock, "1")
    WRONG.update(f"q{number}" for number in range(9))
    await ran(file, clock, "2")
    UNSCORED.update(f"q{number}" for number in range(9))
    seen = scraped(await ran(file, clock, "2"))
    assert seen["tracescore_gold_factual_ratio"] == {("shop", "1"): 1.0, ("shop", "2"): 0.25}
    assert seen["tracescore_gold_faithfulness_ratio"] == {("shop", "1"): 1.0, ("shop", "2"): 1.0}
    assert seen["tracescore_gold_factual_lower_ratio"]["shop", "2"] < 0.25
    assert seen["tracescore_gold_factual_upper_ratio"]["shop", "2"] > 0.25
    assert seen["tracescore_gold_factual_by_slice_ratio"]["shop", "2", "prices", "tag"] == 0.25
    of_tag = ("shop", "2", "prices", "tag")
    limits = [seen[f"tracescore_gold_factual_by_slice_{end}_ratio"][of_tag] for end in ("lower", "upper")]
    assert limits == [seen[f"tracescore_gold_factual_{end}_ratio"]["shop", "2"] for end in ("lower", "upper")]
    assert "tracescore_gold_factual_lowest_slice_ratio" not in seen, "one tag is not the lowest of any"
    assert seen["tracescore_gold_change_ratio"]["shop", "2", "factual"] == -0.75
    assert seen["tracescore_gold_change_p_value"]["shop", "2", "factual"] == pytest.approx(2.0**-9)
    assert {key[1] for key in seen["tracescore_gold_change_ratio"]} == {"2"}
    assert seen["tracescore_gold_flips"] == {("shop", "2", "worse"): 9.0, ("shop", "2", "better"): 0.0}
    assert seen["tracescore_gold_items"]["shop", "2", "scored"] == 12
    assert seen["tracescore_gold_last_run_ok"] == {(): 0.0}
    assert seen["tracescore_gold_last_success_timestamp_seconds"] == {(): NOW + 120}


async def test_a_measure_of_which_too_few_items_are_scored_is_not_shown(tmp_path: Path) -> None:
    file, clock = write_set(tmp_path / "faq.jsonl", 10), SettableClock()
    UNSCORED.update({"q1", "q2"})
    seen = scraped(await ran(file, clock, "1"))
    assert seen["tracescore_gold_factual_ratio"] == {("shop", "1"): 1.0}
    assert "tracescore_gold_completeness_ratio" not in seen  # nobody measured it
    assert seen["tracescore_gold_items"]["shop", "1", "unscored"] == 2


async def test_releases_that_nobody_ran_for_long_expire(tmp_path: Path) -> None:
    file, clock = write_set(tmp_path / "faq.jsonl", 2), SettableClock()
    await ran(file, clock, "1", keep="10d")
    clock.now += 11 * 86_400
    seen = scraped(await ran(file, clock, "2", keep="10d"))
    assert seen["tracescore_gold_factual_ratio"] == {("shop", "2"): 1.0}


async def test_there_are_at_most_twenty_releases(tmp_path: Path) -> None:
    file, clock = write_set(tmp_path / "faq.jsonl", 1), SettableClock()
    for number in range(22):
        of = await ran(file, clock, f"1.{number}")
    assert set(scraped(of)["tracescore_gold_factual_ratio"]) == {("shop", f"1.{number}") for number in range(2, 22)}


async def test_names_that_an_app_makes_up_cannot_break_the_page_of_metrics(tmp_path: Path) -> None:
    tags = ["a\u0007", "a\u0008", 'b"}\n']
    file, clock = write_set(tmp_path / "faq.jsonl", 1, tags=tags), SettableClock()
    await ran(file, clock, 'x"} 1\ntracescore_judge_ready 0\n' + "long" * 100)
    seen = scraped(await ran(file, clock, 'x"} 1\ntracescore_judge_ready 0\n' + "long" * 101))
    assert "tracescore_judge_ready" not in seen
    ((_, release),) = seen["tracescore_gold_factual_ratio"]
    assert len(release) == 128
    assert len(seen["tracescore_gold_factual_by_slice_ratio"]) == 2


def test_before_the_first_run_there_are_no_scores_and_a_time_for_it(tmp_path: Path) -> None:
    seen = scraped(runner(write_set(tmp_path / "faq.jsonl"), ECHO))
    assert not [name for name in seen if name.endswith("_ratio") and "tolerance" not in name]
    assert seen["tracescore_gold_next_run_timestamp_seconds"][()] > NOW
    assert seen["tracescore_gold_info"] == {(): 1.0}


async def test_a_fall_is_one_of_the_service_that_was_asked_and_of_correctness(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, clock = write_set(tmp_path / "faq.jsonl", 12), SettableClock()
    for _ in range(3):
        assert not (await ran(file, clock, "1")).fell("shop")
    WRONG.update(f"q{number}" for number in range(9))
    newest = await ran(file, clock, "2")
    assert newest.fell("shop")
    assert caplog.text.count("event=gold_fell") == 1
    assert not newest.fell("another")


def test_the_lowest_tag_has_an_interval_for_all_that_were_looked_at() -> None:
    outcomes = [
        ItemOutcome(
            f"i{n}", "m", "q", "r", "scored", (f"t{n % 4}", "all"), values={"factual": 0.1 if n % 4 == 2 else 0.9}
        )
        for n in range(40)
    ]
    run = Run(1, "faq", "h", 40, "shop", "2", JUDGE, "hand", NOW, outcomes=tuple(outcomes))
    found = summary(run, 0.5)
    low = found.lowest["factual"]
    assert (low.of.slice, low.looked_at, low.surely) == ("t2", 5, True)
    alone = found.by_tag["t2"]["factual"]
    assert low.of.lower < alone.lower < low.of.mean == alone.mean < alone.upper < low.of.upper
