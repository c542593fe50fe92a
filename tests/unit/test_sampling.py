"""Which interactions are scored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tracescore.config import Sampling
from tracescore.model import Interaction
from tracescore.sampling import Sampler

TRACE_IDS = st.binary(min_size=16, max_size=16)


def sampler(ratio: float, salt: str = "s") -> Sampler:
    return Sampler(Sampling(ratio=ratio, salt=salt), CollectorRegistry())


def interaction(trace_id: bytes) -> Interaction:
    return Interaction(trace_id.hex(), "00" * 8, "complete", "q", "a")


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
