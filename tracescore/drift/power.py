"""How soon a fall of a mean is told: what `tracescore check` prints, of a guess or of what a spool has seen.

The time of a Shiryaev-Roberts detector to a change, D = ln(A I) / I scores: I = (drop - gap)^2 / (2 sd^2) is what a
score tells on average, sd their spread after the fall, gap how far the reference lies below the baseline, A the
threshold in scores. For falls up to .10 simulations of the detector lie within 10 % of it where scores spread to both
sides; of scores that are mostly 1 they are up to a third sooner. Chance brings half as much again now and then.
"""

import math
from collections.abc import Iterator
from statistics import NormalDist

from tracescore.config import Config, PriceConfig
from tracescore.config.drift import DriftConfig
from tracescore.drift.detector import Detector
from tracescore.drift.family import Family
from tracescore.drift.stratum import DOUBT
from tracescore.logs import plain

DROPS = (0.05, 0.10, 0.20)
SPREAD = 0.4
"""Standard deviation that is assumed of scores: as of a mean of .8 when all are 0 or 1, so rather too much."""
_UNLUCKY = 1.5
_TOKENS = (5_500, 900)
"""What an interaction costs a language model, in and out: three measures cold, passages of 1,000 tokens in all."""


def days_of_learning(drift: DriftConfig, scores_per_day: float) -> int:
    """Days until a baseline is in force: whole periods with enough scores."""
    return drift.baseline.days * math.ceil(max(1.0, drift.baseline.scores / scores_per_day / drift.baseline.days))


def gap(drift: DriftConfig, scores_per_day: float, spread: float = SPREAD) -> float:
    """How far the reference lies below the baseline: the tolerance, or the baseline's own doubt where that is more."""
    learned_from = scores_per_day * days_of_learning(drift, scores_per_day)
    return max(drift.tolerance, -NormalDist().inv_cdf(DOUBT) * spread / math.sqrt(learned_from))


def scores_to_detection(drop: float, gap: float, limit: float, spread: float = SPREAD) -> float | None:
    """Scores until a fall by `drop` is told; None for one that the gap hides. `limit` is the threshold in scores."""
    if drop <= gap:
        return None
    told = (drop - gap) ** 2 / (2 * spread * spread)
    return math.log(max(limit * told, math.e)) / told


def report(config: Config, per_day: int) -> Iterator[str]:
    """The lines for a configuration at so many scores a day of one service."""
    if not config.drift.detector:
        return
    family = Family(config.drift, config.sampling, config.measures)
    below, limit = gap(config.drift, per_day), family.threshold * per_day
    ratio = config.sampling.ratio
    of = f", of {per_day / ratio:,.0f} interactions at ratio {ratio:g}" if ratio < 1 else ""
    yield (
        f"one service at {per_day:,.0f} scores a day{of}, "
        f"after learning for {days_of_learning(config.drift, per_day)} days:"
    )
    for drop in DROPS:
        scores = scores_to_detection(drop, below, limit)
        if scores is None:
            settings = "drift.tolerance, drift.baseline"
            yield f"  tracescore does not report a drop of {drop:.2f}, only one above {below:.3f} ({settings})"
            continue
        yield f"  tracescore reports a drop of {drop:.2f} after {_range(scores, per_day)}{_cost(config, scores)}"
    cost = f"; {_TOKENS[0]:,} tokens in and {_TOKENS[1]:,} out each" if _price(config) else ""
    yield (
        f"  assumptions: scores with a standard deviation of {SPREAD} (half of it takes a quarter of the time), "
        f"a sudden drop; a conversation counts as one score; {len(family.kinds)} detectors{cost}"
    )


def measured(config: Config, known: Family) -> Iterator[str]:
    """The lines for what a running process has seen: by detector, its spread and traffic of the last days."""
    for (service, environment), watched in known.watched.items():
        yield f"{plain(service)} ({plain(environment)}), as it has been measured:"
        for kind, detector in watched.detectors.items():
            if kind.against == "baseline":
                yield f"  {kind.name}: {_measured(config.drift, detector, known.threshold)}"


def _measured(drift: DriftConfig, detector: Detector, limit: float) -> str:
    seen = detector.traffic
    if seen is None:
        return "too few answers yet"
    learned = detector.gap(max((each.last for each in detector.tested.values()), default=0.0))
    below = gap(drift, seen.per_day, seen.spread) if learned is None else learned
    told = [f"{seen.per_day:,.0f} answers a day, spread {seen.spread:.2f}; no report of a drop by up to {below:.3f}"]
    for drop in sorted({2 * drift.tolerance, *DROPS}):
        scores = scores_to_detection(drop, below, limit * seen.per_day, seen.spread)
        if scores is not None:
            told.append(f"one by {drop:.2f} after {_range(scores, seen.per_day)}")
    return ", ".join(told)


_UNITS = (("days", 1), ("hours", 24), ("minutes", 24 * 60))
"""How many of each are a day; the first of which it takes two at least is told."""


def _range(scores: float, per_day: float) -> str:
    days = scores / per_day
    unit, of_a_day = next((unit, part) for unit, part in _UNITS if _UNLUCKY * days * part >= 2 or unit == "minutes")
    least, most = days * of_a_day, _UNLUCKY * days * of_a_day
    digits = 0 if least >= 10 else 1
    return f"{scores:,.0f} to {_UNLUCKY * scores:,.0f} scores, {least:,.{digits}f} to {most:,.{digits}f} {unit}"


def _cost(config: Config, scores: float) -> str:
    """What the judge takes for them, where its price is known."""
    price = _price(config)
    if price is None:
        return ""
    cost = scores * (_TOKENS[0] * price.input + _TOKENS[1] * price.output) / 1e6
    return f"; the judge costs {cost:,.2f} to {_UNLUCKY * cost:,.2f}, as judge.price has it"


def affordable(config: Config) -> str:
    """The line that says what the judge's budget pays for; empty without one."""
    price = _price(config)
    if price is None or config.judge.kind != "openai" or config.judge.budget is None:
        return ""
    each = (_TOKENS[0] * price.input + _TOKENS[1] * price.output) / 1e6
    budget = config.judge.budget.per_day
    return (
        f"judge.budget: {budget:g} a day pays for about {budget / each:,.0f} interactions at {each:.2g} each; beyond "
        f"that tracescore lowers sampling to {config.sampling.min_ratio:g}, then scores nothing until midnight UTC"
    )


def _price(config: Config) -> PriceConfig | None:
    return config.judge.price if config.judge.kind == "openai" else None
