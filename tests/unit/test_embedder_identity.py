"""Who answers: the same model everywhere, another one under any name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tracescore.config import EmbeddedJudgeConfig
from tracescore.embedder.identity import Identity
from tracescore.judge.embedded import EmbeddedJudge
from tracescore.judge.epoch import Epochs

pytestmark = pytest.mark.anyio

SEEDS = st.integers(0, 2**32 - 1)


def _vector(seed: int, width: int = 384) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=width)


@given(SEEDS, SEEDS, st.floats(1e-6, 1e6))
def test_neither_rounding_nor_the_length_of_a_vector_makes_another_model(seed: int, noise: int, length: float) -> None:
    vector = _vector(seed)
    seen_elsewhere = length * (vector + 0.01 * _vector(noise))
    assert Identity.of(vector).same(Identity.of(seen_elsewhere))


@given(SEEDS, SEEDS.map(lambda seed: seed + 2**32), st.sampled_from([96, 384, 1536]))
def test_other_numbers_or_another_width_make_another_model(seed: int, other: int, width: int) -> None:
    assert not Identity.of(_vector(seed)).same(Identity.of(_vector(other, width)))
    assert not Identity.of(_vector(seed)).same(Identity.of(_vector(seed)[:96]))


def test_a_mark_shows_the_width_and_is_the_same_for_the_same_numbers() -> None:
    assert Identity.of(_vector(1)).mark == Identity.of(2 * _vector(1)).mark
    assert Identity.of(_vector(1)).mark.startswith("384-")
    assert Identity.of(_vector(1)).mark != Identity.of(_vector(2)).mark


def test_a_vector_of_zeros_is_a_model_of_its_own() -> None:
    zeros = Identity.of(np.zeros(3))
    assert zeros.same(zeros)
    assert not zeros.same(Identity.of(np.ones(3)))


def _epochs(identity: Identity | None) -> Epochs:
    epochs = Epochs("judge", "prompts", "embedder", {}, CollectorRegistry())
    epochs.embedded_by(identity)
    return epochs


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        (_vector(1), _vector(1), 0),
        (_vector(1), _vector(1) + 0.01 * _vector(2), 0),
        (_vector(1), _vector(2), 1),
        (_vector(1), _vector(1, 96), 1),
        (_vector(1), None, 0),
        (None, _vector(1), 0),
    ],
    ids=["same", "rounded", "other numbers", "other width", "not asked yet", "not known before"],
)
@pytest.mark.parametrize("late", [False, True], ids=["known when it goes on", "known later"])
def test_an_epoch_goes_on_unless_another_embedder_answers_than_before_the_restart(before, after, number, late) -> None:
    earlier, now = (None if each is None else Identity.of(each) for each in (before, after))
    before_it, epochs = _epochs(earlier), _epochs(None if late else now)
    before_it.note("model")
    epochs.resume(before_it.state() or b"")
    epochs.embedded_by(now)
    assert (epochs.number, epochs.model) == (number, "model")
    again = _epochs(now)
    again.resume(epochs.state() or b"")
    assert (again.number, again.fingerprint) == (number, epochs.fingerprint)


def test_what_a_version_saved_that_knew_the_name_alone_is_taken_up() -> None:
    epochs = _epochs(Identity.of(_vector(1)))
    epochs.resume(json.dumps([3, "model", "prompts", "any name", "[]"]).encode())
    assert epochs.number == 3
    assert json.loads(epochs.state() or b"")["identity"] == list(Identity.of(_vector(1)).numbers)


class _Encoder:
    """An embedder in this process, as far as the judge looks at it before it is asked."""

    name = "same-name"

    def __init__(self, identity: Identity) -> None:
        self.identity = identity

    async def run(self, work):
        return work()

    def encode(self, texts):
        raise AssertionError(texts)


async def test_the_embedded_judge_begins_an_epoch_when_its_embedder_has_been_replaced() -> None:
    saved: list[bytes] = []

    async def started(vector: np.ndarray) -> int:
        judge = EmbeddedJudge(EmbeddedJudgeConfig(), _Encoder(Identity.of(vector)))
        if saved:
            judge.epochs.resume(saved[-1])
        await judge.probe()
        saved.append(judge.epochs.state() or b"")
        return judge.session("k").epoch

    assert [await started(vector) for vector in (_vector(1), _vector(1), _vector(2), _vector(2))] == [0, 0, 1, 1]
