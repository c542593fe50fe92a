"""An answer that people are asked about: what stays of it, what they see, and the labels that their answers make."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from tracescore.calibration.correction import ANSWERS, JUDGED, Label, LabelGroup
from tracescore.calibration.store import Drawn
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.model import EVALUATOR_VERSION, Interaction, Measure, Result, Score


def ended_of(result: Result) -> float:
    """When the interaction ended, in Unix seconds, as far as clocks can be trusted."""
    return min(result.ended, result.finished)  # an app's clock may run fast


def can_be_labelled(score: Score) -> bool:
    """Relevancy is asked of the whole answer, the others of their items; a blank answer has none and is 0."""
    if score.measure == "answer_relevancy":
        return True
    return score.measure in JUDGED and bool(score.items or score.label == "blank")


def group_of(result: Result, score: Score) -> LabelGroup:
    """What a label of this score is estimated with."""
    told = result.interaction
    source = told.context_source if score.measure == "faithfulness" else ""
    of = label_value(told.service), label_value(told.environment), source
    return LabelGroup(_live(score), result.judge, result.epoch, *of)


def _live(score: Score) -> Measure:
    return next(measure for measure in ANSWERS if measure == score.measure)


def draw(result: Result, scores: Sequence[Score], ratio: float | None) -> Drawn:
    """`ratio` is how likely it was to be drawn; None: it was chosen."""
    kind = ("chosen",) if ratio is None else ()
    parts = "\x00".join((*kind, result.interaction.key, result.judge, str(result.epoch)))
    return Drawn(
        id=hashlib.sha256(parts.encode()).hexdigest()[:32],
        at=ended_of(result),
        judge=result.judge,
        epoch=result.epoch,
        facts=_facts(result, scores, ratio),
        shown=_shown(result.interaction, scores),
    )


def _facts(result: Result, scores: Sequence[Score], ratio: float | None) -> dict[str, Any]:
    """What stays when the label is given: no text of users."""
    told = result.interaction
    return {
        "version": EVALUATOR_VERSION,
        "trace_id": told.trace_id,
        "span_id": told.span_id,
        "pi_score": 1 / told.weight,
        "pi_label": ratio,
        "measures": {
            score.measure: {
                "group": list(group_of(result, score)),
                "score": score.value,
                "judged": [item.verdict for item in score.items] if score.measure in JUDGED else [],
                "blank": score.label == "blank" and score.measure in JUDGED,
            }
            for score in scores
        },
    }


def _shown(told: Interaction, scores: Sequence[Score]) -> dict[str, Any]:
    """What people see: nothing that the judge said of it."""
    return {
        "question": told.question,
        "answer": told.answer,
        "contexts": told.contexts,
        "history": [{"role": message.role, "text": message.text} for message in told.history],
        "items": {s.measure: [item.text for item in s.items] for s in scores if s.measure in JUDGED},
    }


def measures_asked(drawn: Drawn) -> list[Measure]:
    """The measures that people are asked about."""
    known = drawn.facts["measures"]
    return [measure for measure in ANSWERS if measure in known and not known[measure]["blank"]]


def blanks_of(drawn: Drawn) -> dict[str, Any]:
    """The labels that need no people: nothing covers nothing."""
    blank = (measure for measure, facts in drawn.facts["measures"].items() if facts["blank"])
    return {measure: {"label": 0.0, "labelled": []} for measure in blank}


def labels_of(drawn: Drawn, measure: Measure, answers: Sequence[str]) -> dict[str, Any] | None:
    """The label that answers make; None where one of them is not given. ValueError for answers there are not."""
    expected = len(drawn.facts["measures"][measure]["judged"]) or 1
    if unknown := [each for each in answers if each not in (*ANSWERS[measure], "")]:
        raise ValueError(f"{measure}: one of {', '.join(ANSWERS[measure])} expected; got {unknown[0][:40]!r}")
    if len(answers) > expected:
        raise ValueError(f"{measure}: {expected} answers expected; got {len(answers)}")
    if len(answers) < expected or "" in answers:
        return None
    value = sum(ANSWERS[measure][each] for each in answers) / expected
    return {"label": value, "labelled": list(answers) if measure in JUDGED else []}


def labels_in(drawn: Drawn) -> Iterator[tuple[LabelGroup, Label]]:
    """What people said of an answer, beside what the judge said."""
    for measure, given in (drawn.labels or {}).items():
        facts = drawn.facts["measures"][measure]
        probabilities = drawn.facts["pi_score"], drawn.facts["pi_label"]
        verdicts = tuple(facts["judged"]), tuple(given["labelled"])
        yield LabelGroup(*facts["group"]), Label(facts["score"], given["label"], *verdicts, *probabilities)
