"""The scale of scores: which judge gave them, in which epoch, by which evaluators. Over two scales nothing adds up.

A measure of the user's own has a scale of its own beside it: what it is, and what scores it where that is no judge.
"""

from __future__ import annotations

from typing import NamedTuple

from tracescore.model import EVALUATOR_VERSION, Measure, Result


class Scale(NamedTuple):
    """Name of the judge, its epoch, and the version of the evaluators."""

    judge: str
    epoch: int
    version: int

    def is_of_judge(self, other: Scale) -> bool:
        """Whether judge and epoch are the same."""
        return self[:2] == other[:2]


ScaleState = tuple[str, int, int] | tuple[()]
"""What is kept of a scale; empty while there was no score."""


def next_scale(known: Scale | None, result: Result) -> Scale | None:
    """The scale to go on with after a result; None where it is of an epoch before the known one.

    A late result of a judge that has moved on says nothing, while another judge or version begins anew at any epoch.
    """
    scale = Scale(result.judge, result.epoch, EVALUATOR_VERSION)
    late = known is not None and scale < known and scale == known._replace(epoch=scale.epoch)
    return None if late else scale


OwnScalesState = tuple[tuple[str, str, str], ...]
"""What is kept of `OwnScales`: measure, judge of its own or nothing, version."""


class OwnScales:
    """What scores each measure of the user's own, and in which version."""

    def __init__(self, state: OwnScalesState = ()) -> None:
        self._known = {measure: (judge, version) for measure, judge, version in state}

    def note(self, result: Result) -> list[Measure]:
        """Takes a result; the measures that have changed since the one before, and so begin anew."""
        seen = {each.measure: (each.judge, each.version) for each in result.evaluations if each.version}
        changed = [measure for measure, now in seen.items() if self._known.get(measure, now) != now]
        self._known |= seen
        return changed

    def apart(self) -> set[Measure]:
        """Those that no judge scores: another judge changes nothing for them."""
        return {measure for measure, (judge, _) in self._known.items() if judge}

    def judge_of(self, measure: Measure, judge: str) -> str:
        """What scores a measure, where `judge` scores all that have no other."""
        return self._known.get(measure, ("", ""))[0] or judge

    def state(self) -> OwnScalesState:
        """What an instance is made of again."""
        return tuple((measure, *known) for measure, known in self._known.items())
