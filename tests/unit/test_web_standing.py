"""How a measure and a service stand: one decision, over all combinations of what is known."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from tracescore.drift.words import DetectorStateName
from tracescore.model import FAIL_REASONS, SHED_REASONS, SKIP_REASONS
from tracescore.web.advice import FIXES
from tracescore.web.lines import ScoreMean
from tracescore.web.standing import STANDINGS, Facts, decide

HIGH = ScoreMean(0.9, 0.85, 0.94, 100, 100.0)
NEAR = ScoreMean(0.78, 0.72, 0.83, 100, 100.0)
LOW = ScoreMean(0.64, 0.6, 0.68, 100, 100.0)
FEW = ScoreMean(0.2, None, None, 11, 11.0)
STATES = (None, *get_args(DetectorStateName))


@pytest.mark.parametrize(
    ("facts", "word", "brief"),
    [
        (Facts(), "not measured", "not measured: no score in this time"),
        (Facts(missing="no_contexts"), "not measured", "not measured: no passages found to compare the answer with"),
        (Facts(FEW, 0.8), "learning", "learning: 11 of 20 scores"),
        (Facts(HIGH, 0.8), "good", "good: target 0.8"),
        (Facts(HIGH, None), "good", "good: no drop"),
        (Facts(HIGH, 0.8, ["learning"], "learning"), "good", "good: target 0.8"),
        (Facts(HIGH, None, ["learning", "learning"]), "learning", "learning: what is normal is not known yet"),
        (Facts(HIGH, None, ["learning", "steady"]), "good", "good: no drop"),
        (Facts(HIGH, 0.8, ["steady", "suspected"]), "good", "good: a drop is possible; too little evidence yet"),
        (Facts(HIGH, 0.8, ["paused"], "paused"), "good", "good: target 0.8; detectors paused"),
        (Facts(NEAR, 0.8, ["steady"], "steady"), "below target", "below target 0.8; may be chance"),
        (Facts(LOW, 0.8, ["steady"], "steady"), "below target", "below target 0.8"),
        (Facts(LOW, 0.8, ["steady"], "suspected"), "below target", "below target 0.8"),
        (Facts(LOW, None, ["steady"]), "good", "good: no drop"),
        (Facts(HIGH, 0.8, ["steady"], "changed"), "below target", "below target 0.8"),
        (Facts(HIGH, 0.8, ["steady", "changed"]), "falling", "falling: lower than normal"),
        (Facts(None, None, ["changed"]), "falling", "falling: lower than normal"),
        (Facts(LOW, 0.8, ["paused"], "paused"), "below target", "below target 0.8"),
    ],
)
def test_the_word_follows_detectors_then_target_then_count(facts: Facts, word: str, brief: str) -> None:
    found = decide(facts)
    assert (found.word, found.brief) == (word, brief)


@pytest.mark.parametrize(
    ("mean", "target", "normal", "aimed"), [*product((None, FEW, LOW, NEAR, HIGH), (None, 0.8), STATES, STATES)]
)
def test_no_combination_contradicts_itself(mean, target, normal, aimed) -> None:
    found = decide(Facts(mean, target, [] if normal is None else [normal], aimed))
    if "changed" in (normal, aimed):
        assert found.word == ("falling" if normal == "changed" else "below target"), "pages say what alerts say"
        return
    assert found.word != "falling"
    assert (found.word == "not measured") == (mean is None)
    enough = mean is not None and mean.lower is not None
    assert (found.word == "below target") == bool(enough and target and mean.value < target), "as the number is marked"
    if enough and found.word == "below target":
        assert found.sure == (mean.upper < target)
    if mean is FEW:
        assert found.word == "learning"


def test_what_is_sure_is_more_urgent_and_every_word_has_its_place() -> None:
    sure, chance = decide(Facts(LOW, 0.8)), decide(Facts(NEAR, 0.8))
    assert sure.urgency < chance.urgency < decide(Facts()).urgency
    assert STANDINGS == ("falling", "below target", "not measured", "learning", "good")


def test_every_reason_has_a_fix_of_one_line() -> None:
    assert set(FIXES) == {*SKIP_REASONS, *FAIL_REASONS, *SHED_REASONS}
    assert all(fix.endswith(".") for fix in FIXES.values())
    assert max(map(len, FIXES.values())) < 110
