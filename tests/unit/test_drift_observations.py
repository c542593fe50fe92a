"""What the detectors see of a result."""

from __future__ import annotations

import pytest

from tests.results import NOW, result
from tracescore.drift.observations import Conversations, DetectorKind, Observation, kind_scores, kinds
from tracescore.model import Score, Unscored

RELEVANCY, ANSWERED = DetectorKind("answer_relevancy", "baseline"), DetectorKind("answered", "baseline")
COMPLETENESS, MULTIPART = DetectorKind("completeness", "baseline"), DetectorKind("completeness_multipart", "baseline")
FAITHFULNESS = DetectorKind("faithfulness", "baseline")
AIMED = {name: DetectorKind(name, "target") for name in ("answer_relevancy", "completeness", "faithfulness")}


def test_a_committed_answer_is_seen_by_every_detector_that_reads_it() -> None:
    told = result(
        Score("answer_relevancy", 0.8),
        Score("completeness", 0.5, details={"parts": 2}),
        Score("faithfulness", 0.9),
    )
    assert kind_scores(told) == {
        RELEVANCY: 0.8, COMPLETENESS: 0.5, MULTIPART: 0.5, FAITHFULNESS: 0.9, ANSWERED: 1.0,
        AIMED["answer_relevancy"]: 0.8, AIMED["completeness"]: 0.5, AIMED["faithfulness"]: 0.9,
    }  # fmt: skip


def test_a_question_of_one_part_is_none_of_several() -> None:
    assert MULTIPART not in kind_scores(result(Score("completeness", 0.5, details={"parts": 1})))


def test_zeros_of_evasions_stay_out_of_what_a_fall_is_looked_for_in() -> None:
    told = kind_scores(
        result(
            Score("answer_relevancy", 0.0, label="noncommittal"),
            Score("completeness", 0.0, details={"parts": 2}),
            Unscored("faithfulness", "abstained"),
        )
    )
    assert told == {ANSWERED: 0.0, AIMED["answer_relevancy"]: 0.0, AIMED["completeness"]: 0.0}


def test_an_evasion_that_is_excluded_from_relevancy_is_one_all_the_same() -> None:
    told = kind_scores(result(Unscored("answer_relevancy", "abstained"), Score("completeness", 0.2)))
    assert told == {ANSWERED: 0.0, AIMED["completeness"]: 0.2}


def test_where_nothing_tells_whether_an_answer_evades_that_is_not_guessed() -> None:
    told = kind_scores(result(Unscored("answer_relevancy", "judge_timeout"), Score("completeness", 1.0)))
    assert told == {COMPLETENESS: 1.0, AIMED["completeness"]: 1.0}


def test_only_what_is_measured_and_aimed_at_has_a_detector() -> None:
    assert kinds(("completeness",), {"completeness": 0.5, "faithfulness": 0.5}) == [
        COMPLETENESS, MULTIPART, AIMED["completeness"],
    ]  # fmt: skip


# ---------------------------------------------------------------- conversations


def observation(score: float, at: float = NOW, stratum: str = "default", weight: float = 1.0) -> Observation:
    return Observation(("shop", "prod"), RELEVANCY, at, stratum, score, weight)


def test_without_a_conversation_every_interaction_is_an_observation() -> None:
    assert list(Conversations(60).take([observation(0.5)], "")) == [observation(0.5)]


def test_a_conversation_is_one_observation_once_it_is_silent() -> None:
    held = Conversations(60)
    for number, score in enumerate((0.2, 0.4, 0.9)):
        assert list(held.take([observation(score, NOW + 50 * number)], "c")) == []
    (one, other) = held.take([observation(1.0, NOW + 200)], "")
    assert (one.score, one.at, one.weight) == (pytest.approx(0.5), NOW + 100, 1.0)
    assert other.at == NOW + 200
    assert len(held) == 0


def test_what_two_rules_chose_of_a_conversation_stays_apart() -> None:
    held = Conversations(60)
    for score, stratum, weight in ((0.0, "errors", 1.0), (1.0, "default", 4.0), (0.5, "default", 4.0)):
        list(held.take([observation(score, stratum=stratum, weight=weight)], "c"))
    found = {each.stratum: (each.score, each.weight) for each in held.take([observation(1, NOW + 99)], "d")}
    assert found == {"errors": (0.0, 1.0), "default": (0.75, 4.0)}


def test_a_conversation_that_never_pauses_is_told_of_all_the_same() -> None:
    held = Conversations(3600)
    told = [each for number in range(50) for each in held.take([observation(0.5, NOW + 600 * number)], "robot")]
    assert len(told) == 1


def test_conversations_of_two_services_have_nothing_to_do_with_one_another() -> None:
    held = Conversations(60)
    list(held.take([observation(0.0)], "1"))
    list(held.take([observation(1.0)._replace(population=("bank", "prod"))], "1"))
    assert len(held) == 2


def test_open_conversations_outlive_a_restart() -> None:
    first, second = Conversations(60), Conversations(60)
    list(first.take([observation(0.2)], "c"))
    second.resume(first.state())
    list(second.take([observation(0.4, NOW + 1)], "c"))
    (one, _) = second.take([observation(1.0, NOW + 100)], "")
    assert one.score == pytest.approx(0.3)
