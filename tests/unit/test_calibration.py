"""The judge against people: what a file of labels is, and what is said of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tracescore.calibration.correction import LEAST_LABELS, GroupScores, Label, LabelGroup, calibrate, without
from tracescore.calibration.label_file import calibrated, label_line, read_labels, report, sums_line
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.errors import UsageError

GROUP = LabelGroup("faithfulness", "gpt", 2, "shop", "production", "retrieval")


def line(**fields) -> bytes:
    return json.dumps({"measure": "completeness", "score": 0.5, "label": 1.0} | fields).encode()


def drawn(count: int, score: float = 0.5, label: float = 1.0, **more) -> list[Label]:
    return [Label(score, label, **({"pi_score": 0.1, "pi_label": 0.05} | more))] * count


def test_the_weight_of_a_label_is_one_over_both_probabilities_and_unknown_where_one_is() -> None:
    assert Label(1, 1, pi_score=0.1, pi_label=0.05).weight == pytest.approx(200)
    assert Label(1, 1, pi_score=0.1).weight is None
    assert Label(1, 1, pi_label=0.1).weight is None


@pytest.mark.parametrize(("count", "told"), [(LEAST_LABELS - 1, False), (LEAST_LABELS, True)])
def test_there_is_no_corrected_mean_under_100_effective_labels(count: int, told: bool) -> None:
    found = calibrate(GroupScores(drawn(count)))
    assert (found.corrected is not None) == told
    assert bool(found.why_not) != told


def test_effective_labels_are_counted_by_weight() -> None:
    found = calibrate(GroupScores(drawn(60) + drawn(60, pi_score=1.0)))
    assert found.labels == 120
    assert found.corrected is None
    assert found.why_not == "72 effective labels of the 100 needed"


def test_labels_of_unknown_probability_are_compared_but_correct_nothing() -> None:
    found = calibrate(GroupScores(drawn(200, pi_label=None)))
    assert found.corrected is None
    assert "pi_label" in found.why_not
    assert found.difference.mean == pytest.approx(-0.5)
    known = calibrate(GroupScores(drawn(150, label=0.5) + drawn(200, pi_label=None)))
    assert known.labels == 150
    assert known.difference.mean == 0
    assert known.corrected is not None


def test_the_scores_of_many_answers_move_the_mean_that_labels_of_some_give() -> None:
    rng = np.random.default_rng(2)
    score = rng.random(300)
    labels = [Label(s, float(s > 0.5), pi_score=1.0, pi_label=0.1) for s in score]
    low = WeightedSums(3_000, 3_000 * 0.3, 3_000, 3_000 * 0.3, 3_000 * 0.17)
    assert calibrate(GroupScores(labels, low)).corrected.mean < calibrate(GroupScores(labels)).corrected.mean - 0.1
    few = WeightedSums(10, 3, 10, 3, 1.7)
    assert calibrate(GroupScores(labels, few)).corrected == calibrate(GroupScores(labels)).corrected


def test_verdicts_are_counted_by_judge_and_people_and_people_need_not_say_why_a_claim_is_not_supported() -> None:
    one = Label(
        1 / 3, 1 / 3, ("supported", "contradicted", "not_found"), ("supported", "not_supported", "not_supported")
    )
    other = Label(1.0, 0.0, ("supported",), ("not_supported",))
    found = calibrate(GroupScores([one, other]))
    assert found.agreement.mean == pytest.approx(0.75)
    assert found.confusion == {
        ("supported", "supported"): 1,
        ("contradicted", "not_supported"): 1,
        ("not_found", "not_supported"): 1,
        ("supported", "not_supported"): 1,
    }


def test_without_a_label_nothing_is_said() -> None:
    assert calibrate(GroupScores(unlabelled=WeightedSums(9, 9, 9, 9, 9))) is None
    assert list(report(calibrated({GROUP: GroupScores()}))) == ["The file holds no labels."]


def test_sums_without_some_of_their_scores_are_those_of_the_others_and_nothing_where_that_cannot_be() -> None:
    label = Label(0.5, 1.0, pi_score=0.25, pi_label=0.1)
    both = WeightedSums().plus(0.5, 4.0).plus(1.0, 2.0)
    assert without(both, [label]) == WeightedSums().plus(1.0, 2.0)
    assert without(both, [label, label]) == WeightedSums()


def test_what_is_written_is_read_as_it_was() -> None:
    label = Label(0.5, 1.0, ("supported", "not_found"), ("supported", "supported"), 0.1, 0.05)
    sums = WeightedSums(4.0, 2.0, 16.0, 8.0, 4.0)
    rows = [label_line(GROUP, label, trace_id="ab"), sums_line(GROUP, sums), label_line(GROUP, label)]
    assert read_labels(json.dumps(row).encode() for row in rows) == {GROUP: GroupScores([label, label], sums)}


def test_lines_by_hand_need_measure_score_and_label_and_others_are_never_put_together() -> None:
    found = read_labels([line(), b"", line(service="shop"), line(epoch=1)])
    assert found[LabelGroup("completeness")].labels == [Label(0.5, 1.0)]
    assert len(found) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "line 2: unexpected end"),
        (b"[]", "an object with measure, score and label expected"),
        (line(measure="tone"), "measure: one of answer_relevancy, completeness, faithfulness expected; got 'tone'"),
        (line(measure=["completeness"]), "measure: one of"),
        (line(score=None), "score: a number from 0 to 1 expected; got 'None'"),
        (line(label=1.5), "label: a number from 0 to 1 expected; got '1.5'"),
        (line(label=True), "label: a number from 0 to 1 expected; got 'True'"),
        (line(epoch="2"), "epoch: a number expected; got '2'"),
        (line(service=3), "service: a text expected; got '3'"),
        (line(pi_label=0), "pi_label: a probability above 0 expected; got '0'"),
        (line(pi_score=2), "pi_score: a number from 0 to 1 expected"),
        (line(judged="covered"), "judged: a list of verdicts expected"),
        (line(judged=["covered"]), "judged and labelled: as many of each expected; got 1 and 0"),
        (line(judged=["covered"], labelled=["good"]), "labelled: of covered, partial, missing expected; got 'good'"),
        (line(measure="answer_relevancy", judged=["x"], labelled=["relevant"]), "judged: of nothing expected"),
        (line(unlabelled={"weight": 1}), "unlabelled: the sums weight, weighted_score"),
        (line(unlabelled=dict.fromkeys(WeightedSums._fields, 1e308)), "unlabelled: the sums weight, weighted_score"),
        (line(unlabelled=dict.fromkeys(WeightedSums._fields, True)), "unlabelled: the sums weight, weighted_score"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named_with_what_is_expected(text: bytes, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_labels([line(), text])
    assert str(refused.value).startswith("line 2: ")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("score", "label", "told"),
    [(0.9, 0.5, "too kind"), (0.2, 0.6, "too strict"), (0.5, 0.5, "no certain difference")],
)
def test_the_report_says_to_which_side_the_judge_is_off(score: float, label: float, told: str) -> None:
    lines = list(report(calibrated({GROUP: GroupScores(drawn(150, score, label))})))
    assert lines[0] == "faithfulness of shop production retrieval, judge gpt epoch 2"
    assert lines[1] == "  labelled answers 150 (effective 150)"
    assert lines[2].startswith(f"  judge {score:.3f}, people {label:.3f}: off by {score - label:+.3f} (")
    assert lines[2].endswith(told)
    assert lines[3].startswith(f"  corrected mean {label:.3f} (")


def test_names_in_the_report_cannot_move_the_cursor_or_begin_a_line() -> None:
    lines = list(
        report(calibrated({GROUP._replace(service="a\x1b[31m\nb", judge="\r"): GroupScores(drawn(1, 0.5, 0.5))}))
    )
    assert all(line.isprintable() for line in lines)


def test_the_report_shows_verdicts_as_a_table() -> None:
    label = Label(0.5, 0.5, ("supported", "not_found"), ("supported", "not_supported"))
    lines = list(report(calibrated({GROUP: GroupScores([label] * 3)})))
    assert lines[3].startswith("  no corrected mean: the labels lack pi_score and pi_label")
    assert lines[4].startswith("  verdicts: agree 1.000 (")
    assert [row.split() for row in lines[5:]] == [
        ["judge", "says", "people:", "supported", "people:", "not_supported"],
        ["supported", "3", "0"],
        ["contradicted", "0", "0"],
        ["not_found", "0", "3"],
    ]
