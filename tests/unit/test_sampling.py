"""Which interactions are scored."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests import results
from tests.results import SettableClock
from tracescore.config import SamplingConfig, SamplingRuleConfig
from tracescore.formulas import weighted_mean
from tracescore.model import Interaction
from tracescore.sampling import Sampler, matches

TRACE_IDS = st.binary(min_size=16, max_size=16)


def sampler(ratio: float, salt: str = "s") -> Sampler:
    return Sampler(SamplingConfig(ratio=ratio, salt=salt), CollectorRegistry(), SettableClock())


def interaction(trace_id: bytes, service: str = "unknown", **fields: Any) -> Interaction:
    return results.interaction(trace_id=trace_id.hex(), service=service, **fields)


@given(TRACE_IDS, st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_lower_ratio_keeps_a_subset(trace_id: bytes, one: float, other: float) -> None:
    if sampler(min(one, other)).admits(trace_id):
        assert sampler(max(one, other)).admits(trace_id)


@given(TRACE_IDS, st.floats(0.01, 1))
def test_admission_and_decision_agree_and_never_change(trace_id: bytes, ratio: float) -> None:
    kept = sampler(ratio).decide(interaction(trace_id))
    assert (kept is not None) == sampler(ratio).admits(trace_id)
    assert kept is None or kept.weight == 1 / ratio


@given(TRACE_IDS)
def test_ratio_one_keeps_everything(trace_id: bytes) -> None:
    assert sampler(1.0).decide(interaction(trace_id)) is not None


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.5])
def test_the_kept_share_is_the_ratio(ratio: float) -> None:
    ids = [number.to_bytes(16, "big") for number in range(20_000)]
    kept = sum(map(sampler(ratio).admits, ids)) / len(ids)
    assert kept == pytest.approx(ratio, abs=4 * (ratio * (1 - ratio) / len(ids)) ** 0.5)


def test_another_salt_chooses_other_traces() -> None:
    ids = [number.to_bytes(16, "big") for number in range(4_000)]
    both = sum(sampler(0.5, "a").admits(i) and sampler(0.5, "b").admits(i) for i in ids)
    assert both / len(ids) == pytest.approx(0.25, abs=0.04)


SHOP = {"service": "shop", "environment": "prod", "slices": {"route": "/ask", "tenant": "acme"}}
MATCHES: dict[str, tuple[dict[str, Any], bool]] = {
    "the service": ({"service": "shop"}, True),
    "another service": ({"service": "bank"}, False),
    "a pattern": ({"service": "s*", "environment": "pro?"}, True),
    "one of two does not fit": ({"service": "shop", "environment": "test"}, False),
    "the route": ({"route": "/ask"}, True),
    "the tenant": ({"tenant": "acme"}, True),
    "the status of an answer": ({"status": "ok"}, True),
    "the status of a failure": ({"status": "error"}, False),
    "an attribute": ({"attributes": {"beta": "true"}}, False),
    "an attribute that is there": ({"attributes": {"http.response.status_code": "20?"}}, True),
    "a boolean attribute": ({"attributes": {"app.beta": True}}, True),
    "a boolean attribute as text": ({"attributes": {"app.beta": "true"}}, True),
    "a number": ({"attributes": {"http.response.status_code": 200}}, True),
    "case counts": ({"service": "SHOP"}, False),
}


@pytest.mark.parametrize(("names", "fits"), MATCHES.values(), ids=MATCHES.keys())
def test_a_rule_matches_when_everything_it_names_fits(names: dict[str, Any], fits: bool) -> None:
    asked = interaction(b"\1" * 16, **SHOP, attributes={"http.response.status_code": 200, "app.beta": True})
    assert matches(SamplingRuleConfig(name="r", ratio=1.0, **names), asked) is fits


def test_the_first_rule_that_matches_decides_and_sets_the_weight() -> None:
    rules = (
        SamplingRuleConfig(name="a", ratio=0.5, service="shop"),
        SamplingRuleConfig(name="b", ratio=1.0, service="s*"),
    )
    registry = CollectorRegistry()
    decides = Sampler(SamplingConfig(ratio=0.02, rules=rules), registry, SettableClock())
    ids = [number.to_bytes(16, "big") for number in range(400)]
    shop = [kept for i in ids if (kept := decides.decide(interaction(i, service="shop")))]
    assert {(kept.weight, kept.rule) for kept in shop} == {(2.0, "a")}
    assert len(shop) == pytest.approx(200, abs=40)
    assert all(decides.decide(interaction(i, service="street")) for i in ids)
    others = [(kept.weight, kept.rule) for i in ids if (kept := decides.decide(interaction(i)))]
    assert set(others) <= {(50.0, "default")}
    count = registry.get_sample_value("tracescore_sampling_interactions_total", {"rule": "a", "decision": "scored"})
    assert count == len(shop)


@given(TRACE_IDS)
def test_what_any_rule_could_keep_is_admitted(trace_id: bytes) -> None:
    rule = SamplingRuleConfig(name="all", ratio=0.4, service="shop")
    decides = Sampler(SamplingConfig(ratio=0.02, rules=(rule,)), CollectorRegistry(), SettableClock())
    if decides.decide(interaction(trace_id, service="shop")):
        assert decides.admits(trace_id)


def traffic(settings: SamplingConfig, per_minute: list[int]) -> tuple[list[float], list[float], float, list[int]]:
    """Minutes of traffic in which busy minutes answer badly: scores and weights kept, the true mean, kept a minute."""
    chance, clock = random.Random(7), SettableClock()
    decides = Sampler(settings, CollectorRegistry(), clock)
    scores, weights, true, kept_each = [], [], [], []
    for count in per_minute:
        kept_each.append(0)
        for _ in range(count):
            clock.now += 60 / count
            score = min(1.0, max(0.0, chance.gauss(0.9 if count < 1000 else 0.4, 0.1)))
            true.append(score)
            kept = decides.decide(interaction(chance.randbytes(16)))
            if kept:
                scores.append(score)
                weights.append(kept.weight)
                kept_each[-1] += 1
    return scores, weights, sum(true) / len(true), kept_each


def test_a_ratio_that_moves_does_not_move_the_mean() -> None:
    scores, weights, true, _ = traffic(SamplingConfig(max_per_minute=120), [300, 3000] * 8)
    assert weighted_mean(scores, weights) == pytest.approx(true, abs=0.02)
    assert sum(scores) / len(scores) > true + 0.04  # what a mean without weights would say


def test_the_rate_limit_holds_within_minutes_and_lets_go_again() -> None:
    *_, kept = traffic(SamplingConfig(max_per_minute=100), [2000] * 6 + [50] * 6)
    assert all(count == pytest.approx(100, abs=35) for count in kept[4:6])
    assert kept[-1] == 50


def test_the_rate_limit_never_goes_under_min_ratio() -> None:
    scores, weights, _, _ = traffic(SamplingConfig(max_per_minute=1, min_ratio=0.05), [4000] * 2)
    assert max(weights) == 20.0
    assert len(scores) > 200


def test_the_probability_of_a_trace_is_frozen_at_its_first_interaction() -> None:
    clock = SettableClock()
    decides = Sampler(SamplingConfig(max_per_minute=60), CollectorRegistry(), clock)
    first = decides.decide(interaction(b"\1" * 16))
    for number in range(2000):
        decides.decide(interaction(number.to_bytes(16, "big")))
    again = decides.decide(interaction(b"\1" * 16, span_id="11" * 8))
    assert first is not None
    assert again is not None
    assert (first.weight, again.weight) == (1.0, 1.0)
    other = [kept.weight for n in range(99) if (kept := decides.decide(interaction(bytes([n]) * 16)))]
    assert all(weight > 10 for weight in other if weight != 1.0)


def test_the_ratio_in_force_is_shown_by_rule() -> None:
    registry = CollectorRegistry()
    rule = SamplingRuleConfig(name="bank", ratio=0.5, service="bank")
    decides = Sampler(SamplingConfig(rules=(rule,), max_per_minute=60), registry, SettableClock())

    def ratio(rule: str) -> float | None:
        return registry.get_sample_value("tracescore_sampling_ratio", {"rule": rule})

    assert (ratio("default"), ratio("bank")) == (1.0, 0.5)
    for number in range(600):
        decides.decide(interaction(number.to_bytes(16, "big")))
    assert ratio("default") == pytest.approx(0.1)
    assert ratio("bank") == pytest.approx(0.05)
