"""How far two judges agree on the same rows, and how far one agrees with itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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


def compared_lines(measures: Mapping[str, Compared]) -> Iterator[str]:
    """A line per measure: means, the mean difference with its 95 % interval, agreement per verdict and kappa."""
    for measure, found in measures.items():
        told = f"{measure}: no row was scored by both"
        if found.scores:
            first, second = np.array(found.scores).T
            off = judge_difference(second, first, np.ones(len(first)))
            told = (
                f"{measure}: means {first.mean():.3f} and {second.mean():.3f}, difference {off.mean:+.3f} "
                f"[{off.lower:+.3f}, {off.upper:+.3f}] over {len(first)} rows"
            )
        if found.unscored:
            told += f"; {found.unscored} rows without a score of both"
        if found.verdicts:
            same = sum(one == other for one, other in found.verdicts) / len(found.verdicts)
            beyond = kappa(found.verdicts)
            shown = "kappa is not defined" if beyond is None else f"kappa {beyond:.2f}"
            told += f"; {same:.0%} of {len(found.verdicts)} verdicts alike, {shown}"
        yield told


def spread_lines(measures: Mapping[str, Sequence[Sequence[float]]], times: int) -> Iterator[str]:
    """A line per measure: how far the scores of one row lie apart, of rows that were scored each of the `times`."""
    for measure, rows in measures.items():
        whole = np.array([scores for scores in rows if len(scores) == times])
        if not whole.size:
            yield f"{measure}: no row was scored {times} times"
            continue
        deviation = float(np.sqrt(whole.var(axis=1, ddof=1).mean()))
        ranges = np.ptp(whole, axis=1)
        yield (
            f"{measure}: mean {whole.mean():.3f}; one row asked {times} times: standard deviation {deviation:.3f}, "
            f"largest range {ranges.max():.3f}, {np.mean(ranges > 0):.0%} of {len(whole)} rows moved"
        )
