"""How far two judges agree on the same rows, and how far one agrees with itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracescore.formulas import judge_difference

Pair = tuple[str, str]
"""What the first judge said and what the second said."""


def kappa(pairs: Sequence[Pair]) -> float | None:
    """Cohen's kappa (1960): agreement beyond what the shares of the words alone would give.

    None without pairs, and where both judges only ever said one and the same word.
    """
    count = len(pairs)
    if not count:
        return None
    observed = sum(one == other for one, other in pairs) / count
    ours, theirs = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(ours[word] * theirs[word] for word in ours) / count**2
    return None if chance == 1.0 else (observed - chance) / (1.0 - chance)


@dataclass(slots=True)
class Compared:
    """One measure: scores of rows that both judges scored, and their verdicts on the same statements."""

    scores: list[tuple[float, float]] = field(default_factory=list)
    verdicts: list[Pair] = field(default_factory=list)
    unscored: int = 0


def compared(measures: Mapping[str, Compared]) -> Iterator[dict[str, Any]]:
    """By measure: means, the mean difference with its 95 % interval, agreement per verdict and kappa, if there are."""
    for measure, found in measures.items():
        told: dict[str, Any] = {"measure": measure, "rows": len(found.scores), "unscored": found.unscored}
        if found.scores:
            first, second = np.array(found.scores).T
            off = judge_difference(second, first, np.ones(len(first)))
            told |= {"means": [float(first.mean()), float(second.mean())]}
            told |= {"difference": off.mean, "lower": off.lower, "upper": off.upper}
        if found.verdicts:
            same = sum(one == other for one, other in found.verdicts) / len(found.verdicts)
            told |= {"verdicts": len(found.verdicts), "agreement": same, "kappa": kappa(found.verdicts)}
        yield told


def compared_line(told: Mapping[str, Any]) -> str:
    """What `compared` found of a measure, as a line for people."""
    line = f"{told['measure']}: no row was scored by both"
    if told["rows"]:
        first, second = told["means"]
        line = (
            f"{told['measure']}: means {first:.3f} and {second:.3f}, difference {told['difference']:+.3f} "
            f"[{told['lower']:+.3f}, {told['upper']:+.3f}] over {told['rows']} rows"
        )
    if told["unscored"]:
        line += f"; {told['unscored']} rows without a score of both"
    if "verdicts" in told:
        shown = "kappa is not defined" if told["kappa"] is None else f"kappa {told['kappa']:.2f}"
        line += f"; {told['agreement']:.0%} of {told['verdicts']} verdicts alike, {shown}"
    return line


def spread(measures: Mapping[str, Sequence[Sequence[float]]], times: int) -> Iterator[dict[str, Any]]:
    """By measure: how far the scores of one row lie apart, of rows that were scored each of the `times`."""
    for measure, rows in measures.items():
        whole = np.array([scores for scores in rows if len(scores) == times])
        told: dict[str, Any] = {"measure": measure, "rows": len(whole), "times": times}
        if whole.size:
            ranges = np.ptp(whole, axis=1)
            deviation = float(np.sqrt(whole.var(axis=1, ddof=1).mean()))
            told |= {"mean": float(whole.mean()), "standard_deviation": deviation}
            told |= {"largest_range": float(ranges.max()), "moved": float(np.mean(ranges > 0))}
        yield told


def spread_line(told: Mapping[str, Any]) -> str:
    """What `spread` found of a measure, as a line for people."""
    if not told["rows"]:
        return f"{told['measure']}: no row was scored {told['times']} times"
    return (
        f"{told['measure']}: mean {told['mean']:.3f}; one row asked {told['times']} times: "
        f"standard deviation {told['standard_deviation']:.3f}, largest range {told['largest_range']:.3f}, "
        f"{told['moved']:.0%} of {told['rows']} rows moved"
    )
