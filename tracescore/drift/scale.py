"""The scale of scores: which judge gave them, in which epoch, by which evaluators. Over two scales nothing adds up."""

from __future__ import annotations

from typing import NamedTuple

from tracescore.model import EVALUATOR_VERSION, Result


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
