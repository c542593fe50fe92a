"""What becomes of a measure where the judge left out verdicts: bounds, and never a mean over the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracescore.model import Item, Measure, Unscored


def incomplete(measure: Measure, items: Sequence[Item], what: str) -> Unscored | None:
    """Unscored(`judge_incomplete`) where one of the items, named by `what`, has no verdict; None where all have one.

    The bounds of the mean credit take what is open as all bad and as all good.
    """
    missing = sum(not item.verdict for item in items)
    if not missing:
        return None
    count, known = len(items), math.fsum(item.credit or 0.0 for item in items)
    detail = f"{missing} of {count} {what} without a verdict"
    return Unscored(measure, "judge_incomplete", detail, known / count, (known + missing) / count, tuple(items))
