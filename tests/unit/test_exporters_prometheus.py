"""Scores as Prometheus metrics: the names, the numbers, and the limits on what telemetry can do to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from tests.results import NOW, SettableClock, relevancy, result
from tests.states import reread
from tracescore.config import PrometheusConfig, SamplingConfig
from tracescore.config.drift import DriftConfig
from tracescore.exporters.prometheus.exporter import PrometheusExporter
from tracescore.exporters.prometheus.exposition import render
from tracescore.exporters.prometheus.histogram import BucketsState
from tracescore.formulas import gaffke_interval
from tracescore.model import Result, Score, Unscored

pytestmark = pytest.mark.anyio

TENTHS = tuple(n / 10 for n in range(1, 11))
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
LABELS = {
    "service_name": "shop",
    "deployment_environment": "production",
    "service_version": "1.4.2",
    "judge": "embedded-v2",
}


class Rig:
    """An exporter on a registry of its own, and what a scrape of it shows."""

    def __init__(self, *, min_count: int = 1, max_series: int = 10_000, ratio: float = 1.0, **drift: Any) -> None:
        self.registry, self.clock = CollectorRegistry(), SettableClock()
        self.exporter = PrometheusExporter(
            self.registry,
            PrometheusConfig(max_series=max_series),
            DriftConfig(min_count=min_count, **drift),
            SamplingConfig(ratio=ratio),
            self.clock,
        )

    async def export(self, *results: Result) -> None:
        for each in results:
            await self.exporter.export(each)

    async def samples(self, name: str, accept: str = "") -> list[Sample]:
        _, body = await render(self.registry, accept)
        parse: Callable[..., Any] = parse_openmetrics if accept else parse_text
        return [s for family in parse(body.decode()) for s in family.samples if s.name == name]

    async def value(self, name: str, **labels: str) -> float | None:
        """The only sample of that name and exactly these labels; None where there is none."""
        found = [s.value for s in await self.samples(name) if s.labels == labels]
        assert len(found) <= 1
        return found[0] if found else None


async def test_gauges_show_the_window_under_the_names_and_labels_of_the_documentation() -> None:
    rig = Rig()
    values = [0.2, 0.4, 0.9]
    await rig.export(*(result(relevancy(value), number=n) for n, value in enumerate(values)))
    await rig.export(result(Unscored("answer_relevancy", "judge_incomplete", lo=0.1, hi=0.8), number=9))
    name = "tracescore_answer_relevancy"
    lower, upper = gaffke_interval(values, [1, 1, 1], 1)
    assert await rig.value(f"{name}_ratio", **LABELS) == pytest.approx(0.5)
    assert await rig.value(f"{name}_lower_ratio", **LABELS) == pytest.approx(lower)
    assert await rig.value(f"{name}_upper_ratio", **LABELS) == pytest.approx(upper)
    assert await rig.value(f"{name}_worst_ratio", **LABELS) == pytest.approx((1.5 + 0.1) / 4)
    assert await rig.value(f"{name}_best_ratio", **LABELS) == pytest.approx((1.5 + 0.8) / 4)
    assert await rig.value(f"{name}_effective_scores", **LABELS) == pytest.approx(3)


async def test_the_targets_are_exposed_so_that_rules_need_not_repeat_them() -> None:
    rig = Rig(targets={"completeness": {"*": 0.7, "shop": 0.8}, "answer_correctness": 0.9, "faithfulness": None})
    found = {
        (s.labels["measure"], s.labels["service_name"]): s.value for s in await rig.samples("tracescore_target_ratio")
    }
    assert found == {
        ("answer_relevancy", ""): 0.5,
        ("completeness", ""): 0.7,
        ("completeness", "shop"): 0.8,
        ("answer_correctness", ""): 0.9,
    }


async def test_scores_are_held_against_the_target_of_their_service() -> None:
    rig = Rig(targets={"answer_relevancy": {"*": None, "shop": 0.7}})
    for number, service in enumerate(("shop", "bank")):
        await rig.export(result(relevancy(0.6), number=number, service=service))
    (below,) = await rig.samples("tracescore_answer_relevancy_below_target_weight_total")
    assert (below.labels["service_name"], below.value) == ("shop", 1)


async def test_gauges_are_absent_under_min_count_while_the_count_says_why() -> None:
    rig = Rig(min_count=3)
    await rig.export(result(relevancy(0.5), number=1), result(relevancy(0.5), number=2))
    for suffix in ("ratio", "lower_ratio", "upper_ratio", "worst_ratio", "best_ratio"):
        assert await rig.samples(f"tracescore_answer_relevancy_{suffix}") == []
    assert await rig.value("tracescore_answer_relevancy_effective_scores", **LABELS) == 2
    assert await rig.value("tracescore_answer_relevancy_weight_total", **LABELS) == 2


async def test_gauges_go_when_their_scores_age_though_nothing_new_comes() -> None:
    rig = Rig(window="1h")
    await rig.export(result(relevancy(0.5)))
    assert await rig.value("tracescore_answer_relevancy_ratio", **LABELS) == 0.5
    rig.clock.now += 3600
    assert await rig.samples("tracescore_answer_relevancy_ratio") == []
    assert await rig.samples("tracescore_answer_relevancy_effective_scores") == []
    assert await rig.value("tracescore_answer_relevancy_weight_total", **LABELS) == 1


async def test_a_skipped_evaluation_is_in_no_bound_and_makes_no_series() -> None:
    rig = Rig()
    await rig.export(result(relevancy(0.5), Unscored("faithfulness", "no_contexts")))
    await rig.export(result(Unscored("answer_relevancy", "app_error"), number=2))
    assert await rig.value("tracescore_answer_relevancy_worst_ratio", **LABELS) == 0.5
    assert await rig.samples("tracescore_faithfulness_weight_total") == []


async def test_sums_give_mean_and_effective_count_of_any_number_of_replicas() -> None:
    weights, values = [1.0, 4.0, 10.0, 10.0], [0.9, 0.3, 0.0, 0.55]
    sums = dict.fromkeys(
        ("weight", "weighted_score", "weight_squared", "weight_squared_score", "weight_squared_score_squared"), 0.0
    )
    below = 0.0
    for part in (slice(0, 2), slice(2, 4)):
        rig = Rig(ratio=0.1)
        for number, (weight, value) in enumerate(zip(weights[part], values[part], strict=True)):
            await rig.export(result(relevancy(value), number=number, weight=weight))
        for name in sums:
            sums[name] += await rig.value(f"tracescore_answer_relevancy_{name}_total", **LABELS) or 0
        below += await rig.value("tracescore_answer_relevancy_below_target_weight_total", **LABELS) or 0
    pairs = list(zip(weights, values, strict=True))
    assert sums["weighted_score"] / sums["weight"] == pytest.approx(sum(w * s for w, s in pairs) / sum(weights))
    assert sums["weight_squared"] == pytest.approx(sum(w * w for w in weights))
    assert sums["weight_squared_score"] == pytest.approx(sum(w * w * s for w, s in pairs))
    assert sums["weight_squared_score_squared"] == pytest.approx(sum(w * w * s * s for w, s in pairs))
    assert below == 4.0 + 10.0


async def test_a_score_at_its_target_is_not_below_it() -> None:
    rig = Rig(targets={"answer_relevancy": 0.5})
    await rig.export(result(relevancy(0.5)), result(relevancy(0.49), number=2))
    assert await rig.value("tracescore_answer_relevancy_below_target_weight_total", **LABELS) == 1


async def test_a_measure_without_a_target_has_no_series_below_it() -> None:
    rig = Rig(targets={"faithfulness": 0.85, "answer_relevancy": None})
    await rig.export(result(relevancy(0.1)))
    assert await rig.samples("tracescore_answer_relevancy_below_target_weight_total") == []


async def test_the_histogram_has_tenths_as_bounds_whatever_the_target_and_is_unweighted() -> None:
    rig = Rig(targets={"answer_relevancy": 0.55})
    await rig.export(result(relevancy(0.0), weight=7.0), result(relevancy(0.52), number=2), result(relevancy(1.0)))
    buckets = {s.labels["le"]: s.value for s in await rig.samples("tracescore_answer_relevancy_score_bucket")}
    assert list(buckets) == [*(f"{n / 10}" for n in range(11)), "+Inf"]
    assert (buckets["0.0"], buckets["0.5"], buckets["0.6"], buckets["0.9"], buckets["1.0"]) == (1, 1, 2, 2, 3)
    assert await rig.value("tracescore_answer_relevancy_score_count", **LABELS) == 3
    assert await rig.value("tracescore_answer_relevancy_score_sum", **LABELS) == pytest.approx(1.52)


async def test_low_buckets_keep_the_ids_of_their_own_last_score() -> None:
    rig = Rig()
    for number, value in enumerate([0.0, 0.05, 0.95, 0.97], start=1):
        await rig.export(result(relevancy(value), number=number))
    samples = await rig.samples("tracescore_answer_relevancy_score_bucket", OPENMETRICS)
    exemplars = {s.labels["le"]: s.exemplar for s in samples if s.exemplar}
    assert exemplars.keys() == {"0.0", "0.1", "1.0"}
    assert exemplars["0.1"].labels == {"trace_id": f"{2:032x}", "span_id": f"{2:016x}"}
    assert exemplars["0.1"].value == 0.05
    assert exemplars["1.0"].labels["trace_id"] == f"{4:032x}"


async def test_faithfulness_is_told_apart_by_where_the_contexts_were_read() -> None:
    rig = Rig()
    for number, source in enumerate(("retrieval", "prompt")):
        await rig.export(result(Score("faithfulness", number / 2), number=number, context_source=source))
    for number, source in enumerate(("retrieval", "prompt")):
        labels = LABELS | {"context_source": source}
        assert await rig.value("tracescore_faithfulness_ratio", **labels) == number / 2


async def test_slices_are_sums_of_one_dimension_each() -> None:
    rig = Rig()
    await rig.export(result(relevancy(0.25), weight=2.0, slices={"route": "/ask", "tenant": "acme"}))
    samples = await rig.samples("tracescore_answer_relevancy_by_slice_weighted_score_total")
    assert [(s.labels, s.value) for s in samples] == [
        (LABELS | {"slice_key": "route", "slice": "/ask"}, 0.5),
        (LABELS | {"slice_key": "tenant", "slice": "acme"}, 0.5),
    ]
    assert await rig.samples("tracescore_answer_relevancy_by_slice_ratio") == []


async def test_windows_of_evidence_are_a_slice_of_faithfulness_with_few_values() -> None:
    rig = Rig()
    for number, windows in enumerate((1, 1, 2, 3, 40)):
        await rig.export(result(Score("faithfulness", 0.5, details={"windows": windows}), number=number))
    samples = await rig.samples("tracescore_faithfulness_by_slice_weight_total")
    found = {s.labels["slice"]: s.value for s in samples if s.labels["slice_key"] == "windows"}
    assert found == {"1": 2, "2": 1, "3+": 2}


async def test_scores_older_than_the_window_are_in_no_metric_but_their_own() -> None:
    rig = Rig(window="10m")
    await rig.export(result(relevancy(0.0), ended=NOW - 600), result(relevancy(1.0), number=2, ended=NOW - 599))
    assert await rig.value("tracescore_drift_late_scores_total", measure="answer_relevancy") == 1
    assert await rig.value("tracescore_answer_relevancy_weight_total", **LABELS) == 1
    assert await rig.value("tracescore_answer_relevancy_ratio", **LABELS) == 1.0
    assert await rig.value("tracescore_answer_relevancy_score_count", **LABELS) == 1


async def test_answer_correctness_has_no_live_series() -> None:
    rig = Rig()
    await rig.export(result(Score("answer_correctness", 0.5)))
    _, body = await render(rig.registry, "")
    assert b"answer_correctness" not in body


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("", "unknown"),
        ("a" * 200, "a" * 127 + "…"),
        ("line\nbreak\x00", "line�break�"),
        ("half a pair \ud800", "half a pair �"),
        ('quote " and \\', 'quote " and \\'),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
async def test_label_values_from_telemetry_are_made_safe(given: str, shown: str) -> None:
    rig = Rig()
    await rig.export(result(relevancy(0.5), service=given, slices={"tenant": given}))
    for accept in ("", OPENMETRICS):
        (sample,) = await rig.samples("tracescore_answer_relevancy_ratio", accept)
        assert sample.labels["service_name"] == shown
        (sliced,) = await rig.samples("tracescore_answer_relevancy_by_slice_weight_total", accept)
        assert sliced.labels["slice"] == shown


async def test_telemetry_that_calls_itself_other_shares_the_series_of_the_rest() -> None:
    rig = Rig(max_series=100)
    results = [result(relevancy(0.5), number=n, release=f"r{n}") for n in range(9)]
    named_other = result(relevancy(0.5), number=9, service="other", environment="other", release="other")
    await rig.export(named_other, *results, named_other)
    shown = await rig.samples("tracescore_answer_relevancy_weight_total")
    assert len({tuple(sample.labels.items()) for sample in shown}) == len(shown)
    assert sum(sample.value for sample in shown) == 11


@pytest.mark.parametrize("max_series", [100, 150, 500])
async def test_the_cap_holds_for_all_series_and_the_rest_goes_to_other(max_series: int) -> None:
    rig = Rig(max_series=max_series)
    for number in range(60):
        fields: dict[str, Any] = {"release": f"r{number // 2}", "slices": {"tenant": f"t{number // 2}"}}
        value = number % 2  # scores that are all alike have no correlation
        scores = (relevancy(value), Score("completeness", value), Score("faithfulness", value))
        await rig.export(result(*scores, number=number, **fields))
    _, body = await render(rig.registry, "")
    named = [s for family in parse_text(body.decode()) for s in family.samples if "judge" in s.labels]
    assert len(named) <= max_series
    assert await rig.value("tracescore_exporters_series") == len(named)
    folded = await rig.value("tracescore_exporters_folded_scores_total", group="answer_relevancy")
    other = LABELS | dict.fromkeys(("service_name", "deployment_environment", "service_version"), "other")
    assert folded == await rig.value("tracescore_answer_relevancy_weight_total", **other)
    assert sum(s.value for s in await rig.samples("tracescore_answer_relevancy_weight_total")) <= 60
    assert sum(s.value for s in await rig.samples("tracescore_answer_relevancy_by_slice_weight_total")) <= 60


async def test_a_release_that_is_gone_makes_room_for_the_newest() -> None:
    rig = Rig(max_series=200, window="1h")
    for number in range(5):
        await rig.export(result(relevancy(0.5), number=number, release=f"old{number}"))
    rig.clock.now += 3601
    await rig.export(result(relevancy(0.5), ended=rig.clock.now, finished=rig.clock.now, release="new"))
    (sample,) = await rig.samples("tracescore_answer_relevancy_ratio")
    assert sample.labels["service_version"] == "new"


async def test_every_family_is_valid_in_both_formats_and_none_is_called_created() -> None:
    rig = Rig()
    scores = (relevancy(0.5), Score("completeness", 0.5), Score("faithfulness", 0.5))
    await rig.export(result(*scores, slices={"route": "/ask"}))
    for accept, parse in (("", parse_text), (OPENMETRICS, parse_openmetrics)):
        _, body = await render(rig.registry, accept)
        samples = [s for family in parse(body.decode()) for s in family.samples]
        assert not [s.name for s in samples if s.name.endswith("_created")]
        assert not [s for s in samples if math.isnan(s.value)]
    assert body.endswith(b"# EOF\n")
    assert body.count(b"# EOF") == 1


async def test_gauges_say_that_they_are_of_this_process() -> None:
    rig = Rig()
    _, body = await render(rig.registry, "")
    gauges = [f for f in parse_text(body.decode()) if f.type == "gauge" and f.name.startswith("tracescore_answer_")]
    assert len(gauges) == 7
    assert all("of this process" in family.documentation for family in gauges)


async def test_a_large_scrape_lets_others_run_in_between() -> None:
    """While ten thousand series are rendered, another task gets its turn many times."""
    rig = Rig(min_count=1)
    scores = (relevancy(0.5), Score("completeness", 0.5), Score("faithfulness", 0.5))
    for number in range(110):
        await rig.export(result(*scores, number=number, release=f"r{number}"))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        _, body = await render(rig.registry, "")
        tasks.cancel_scope.cancel()
    assert body.count(b"\n") > 8_000
    assert turns > 30
    samples = [s for family in rig.registry.collect() for s in family.samples if not s.name.endswith("_created")]
    for accept, parse in (("", parse_text), (OPENMETRICS, parse_openmetrics)):
        _, body = await render(rig.registry, accept)
        shown = [sample for family in parse(body.decode()) for sample in family.samples]
        assert len(shown) == len(samples)


async def test_a_scrape_is_of_one_moment_though_scores_come_while_it_is_written() -> None:
    rig = Rig()
    scores = (relevancy(0.5), Score("completeness", 0.5), Score("faithfulness", 0.5))
    await rig.export(*(result(*scores, number=number) for number in range(5)))

    async def score() -> None:
        for number in range(5, 1_000):
            await rig.export(result(*scores, number=number))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(score)
        _, body = await render(rig.registry, "")
        tasks.cancel_scope.cancel()
    shown = {s.name: s.value for family in parse_text(body.decode()) for s in family.samples}
    for measure in ("answer_relevancy", "completeness", "faithfulness"):
        counted = (
            shown[f"tracescore_{measure}_{each}"] for each in ("weight_total", "score_count", "effective_scores")
        )
        assert set(counted) == {5}


async def everything(rig: Rig) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    _, body = await render(rig.registry, "")
    families = list(parse_text(body.decode()))
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


async def counted(rig: Rig) -> dict[Any, float]:
    """Everything but the windows of `other`, into which nothing is put back that may have given way meanwhile."""
    shown = await everything(rig)
    return {key: value for key, value in shown.items() if ("service_name", "other") not in key[1] or "_total" in key[0]}


async def test_another_process_goes_on_from_the_totals_and_recent_results_of_one_before() -> None:
    first, second = Rig(max_series=200), Rig(max_series=200)
    faithful = [Score("faithfulness", 0.7), Unscored("completeness", "judge_timeout"), relevancy(0.4)]
    results = [result(*faithful, number=n, release=f"r{n % 4}", slices={"route": f"/{n}"}) for n in range(8)]
    await first.export(*results, result(relevancy(0.1), ended=NOW - 9000))
    sums = await first.samples("tracescore_answer_relevancy_weight_total")
    assert any("other" in sample.labels.values() for sample in sums)
    second.exporter.resume(reread(first.exporter.state()))
    for each in results:
        second.exporter.refill(each)
    assert await counted(second) == await counted(first)
    for rig in (first, second):
        await rig.export(result(relevancy(0.9), number=9, release="r1"))
    assert await counted(second) == await counted(first)


async def test_a_histogram_of_0_1_0_whose_target_was_a_bound_goes_on_without_it_and_another_one_begins_anew() -> None:
    first, second = Rig(), Rig()
    await first.export(result(relevancy(0.4)))
    state = first.exporter.state()
    (series,) = (each for each in state.table.series if each.buckets)
    with_target = BucketsState((0.0, *TENTHS[:4], 0.45, *TENTHS[4:]), (1, 0, 0, 0, 2, 3, 4, *[0] * 6), 9.5)
    other = BucketsState((0.0, 0.3, 1.0), (1, 2, 3, 4), 9.5)
    for kept, count, up_to_half in ((with_target, 10, 10), (other, 0, 0)):
        second = Rig()
        table = replace(state.table, series=(replace(series, buckets=kept),))
        second.exporter.resume(replace(state, table=table))
        assert await second.value("tracescore_answer_relevancy_score_count", **LABELS) == count
        assert await second.value("tracescore_answer_relevancy_score_bucket", le="0.5", **LABELS) == up_to_half
        assert await second.value("tracescore_answer_relevancy_weight_total", **LABELS) == 1


async def test_totals_for_which_there_is_no_room_any_more_are_left_out() -> None:
    first, second = Rig(), Rig(max_series=200)
    await first.export(*(result(relevancy(0.5), number=n, release=f"r{n}") for n in range(20)))
    second.exporter.resume(first.exporter.state())
    assert 0 < len(await second.samples("tracescore_answer_relevancy_weight_total")) < 20
    assert (await second.samples("tracescore_exporters_series"))[0].value <= 150


ABSTAINED = "tracescore_answer_relevancy_noncommittal_weight_total"


async def test_abstentions_are_a_series_of_their_own_whether_they_count_as_zero_or_not() -> None:
    rig = Rig()
    evades = Score("answer_relevancy", 0.0, label="noncommittal")
    await rig.export(result(evades, number=1, weight=4.0), result(relevancy(0.0), number=2, weight=4.0))
    assert await rig.value(ABSTAINED, **LABELS) == 4
    await rig.export(result(Unscored("answer_relevancy", "abstained"), number=3, weight=4.0))
    assert await rig.value(ABSTAINED, **LABELS) == 8
    assert await rig.value("tracescore_answer_relevancy_weight_total", **LABELS) == 8


async def test_an_abstention_is_counted_once_and_not_for_every_measure() -> None:
    rig = Rig()
    evades = Score("answer_relevancy", 0.0, label="noncommittal")
    await rig.export(result(evades, Unscored("faithfulness", "abstained"), Score("completeness", 0.0)))
    assert await rig.value(ABSTAINED, **LABELS) == 1
    assert not await rig.samples("tracescore_faithfulness_noncommittal_weight_total")
