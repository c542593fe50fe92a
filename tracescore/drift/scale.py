"""The scale of scores: which judge gave them, in which epoch, by which evaluators. Over two scales nothing adds up."""

from __future__ import annotations

from typing import Any

from tracescore.model import EVALUATOR_VERSION, Result

Scale = list[Any]
"""Name of the judge, its epoch, and the version of the evaluators; empty while there is no score."""


def going_on(known: Scale, result: Result) -> Scale | None:
    """The scale to go on with after a result; None where it is of an epoch before the known one.

    A late result of a judge that has moved on says nothing, while another judge or version begins anew at any epoch.
    """
    scale = [result.judge, result.epoch, EVALUATOR_VERSION]
    if known and (scale[0], scale[2]) == (known[0], known[2]) and scale[1] < known[1]:
        return None
    return scale
