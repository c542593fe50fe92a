"""How long a change that was reported remains one."""

import math
from typing import NamedTuple

from tracescore.drift.detector import Detector

QUIET = 50
"""Scores for which nothing must be suspected before a change is over. Of scores that are 0 or 1, so many may be right
in a row by luck while a drop lasts: without this wait its alert ends and begins again two to three times as often."""


class ReportedDrop(NamedTuple):
    """A change that was reported: when, in Unix seconds, when it probably began, and at which score it became quiet."""

    at: float
    onset: float
    quiet: int | None = None


def gone_on(told: ReportedDrop, detector: Detector, threshold: float) -> ReportedDrop | None:
    """The change after the scores that the detector has seen by now; None when it is over.

    Evidence near the threshold goes to and fro: a change remains one until it is not even suspected, for a while.
    """
    if detector.evidence >= math.sqrt(threshold):
        return told._replace(quiet=None)
    quiet = detector.scores if told.quiet is None else told.quiet
    return told._replace(quiet=quiet) if 0 <= detector.scores - quiet < QUIET else None
