"""Every score and estimate as a pure function over numbers and arrays: the science on one page.

Scores follow the formulas of RAGAS 0.4.3 where they agree with it (see the parity test); they differ only where
a number would be invented: nothing measured gives None, never 0, 1 or NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


def cosine(a: ArrayLike, b: ArrayLike) -> float | None:
    """Cosine of two vectors of one length, in [-1, 1]; None when either has no length.

    Raises ValueError when their shapes differ.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(f"vectors of one length expected; got shapes {x.shape} and {y.shape}")
    norms = float(np.linalg.norm(x)) * float(np.linalg.norm(y))
    return float(np.dot(x, y)) / norms if norms > 0 and math.isfinite(norms) else None


def answer_relevancy(question_vector: ArrayLike, generated_vectors: ArrayLike, noncommittal: bool) -> float | None:
    """Mean cosine of the question, shape (d,), and those generated from the answer, (n, d), clipped to [0, 1].

    0 when the answer is noncommittal; None without a generated question or a vector of length 0. Source: RAGAS.
    """
    cosines = [cosine(vector, question_vector) for vector in np.asarray(generated_vectors, dtype=np.float64)]
    known = [c for c in cosines if c is not None]
    if not known or len(known) < len(cosines):
        return None
    return 0.0 if noncommittal else clip(math.fsum(known) / len(known))


def completeness(credits: Sequence[float]) -> float | None:
    """Mean credit (1 covered, 0.5 partly, 0 missing) over the required parts; None without parts.

    Raises ValueError for a credit outside [0, 1]. Source: AutoNuggetizer (arXiv 2504.15068), equal weights.
    """
    if any(not 0.0 <= credit <= 1.0 for credit in credits):
        raise ValueError(f"credits lie in [0, 1]; got {list(credits)}")
    return math.fsum(credits) / len(credits) if credits else None


def faithfulness(supported: float, claims: float) -> float | None:
    """Supported claims (the sum of their credits) over claims submitted, not over verdicts returned; None without any.

    Raises ValueError unless 0 <= supported <= claims. Source: RAGAS faithfulness.
    """
    if not 0 <= supported <= claims:
        raise ValueError(f"0 <= supported <= claims expected; got {supported} of {claims}")
    return supported / claims if claims else None


def average_precision(useful: Sequence[bool]) -> float | None:
    """Mean precision at the useful passages, best rank first; 0 where none is useful, None for no passage.

    Source: RAGAS context precision, without its 1e-10 in the denominator.
    """
    hits = [rank for rank, each in enumerate(useful, 1) if each]
    precisions = [found / rank for found, rank in enumerate(hits, 1)] or [0.0]
    return math.fsum(precisions) / len(precisions) if useful else None


def coverage(covered: float, claims: float) -> float | None:
    """Claims of a reference that are made elsewhere over all of its claims; see `faithfulness`."""
    return faithfulness(covered, claims)


def f_beta(tp: float, fp: float, fn: float, beta: float = 1.0) -> float | None:
    """F measure of claims: beta > 1 favours recall, its sign nothing. None when there is nothing to compare.

    Raises ValueError for negative counts, and a beta that is no finite number. Source: van Rijsbergen; RAGAS.
    """
    if min(tp, fp, fn) < 0:
        raise ValueError(f"counts are not negative; got tp={tp}, fp={fp}, fn={fn}")
    if isinstance(beta, bool) or not isinstance(beta, Real) or not math.isfinite(beta):
        raise ValueError(f"beta is a finite number; got {beta!r}")
    if tp + fp + fn == 0:
        return None
    return (1 + beta**2) * tp / ((1 + beta**2) * tp + beta**2 * fn + fp) if tp else 0.0


def answer_correctness(factual: float, similarity: float, weights: tuple[float, float] = (0.75, 0.25)) -> float:
    """Weighted mean of the factual F and the similarity of answer and reference, the latter clipped to [0, 1].

    Raises ValueError for weights that `check_weights` refuses. Source: RAGAS answer correctness.
    """
    first, second = check_weights(weights)
    return (first * factual + second * clip(similarity)) / (first + second)


def check_weights(weights: Sequence[float]) -> tuple[float, float]:
    """The two weights of answer correctness as floats; ValueError says what is wrong with them."""
    if len(weights) != 2:
        raise ValueError(f"weights: two numbers expected, factual first, then similarity; got {list(weights)}")
    first, second = (float(weight) for weight in weights)
    if not (math.isfinite(first) and math.isfinite(second)) or min(first, second) < 0:
        raise ValueError(f"weights: finite numbers >= 0 expected; got {list(weights)}")
    if first + second == 0:
        raise ValueError("weights: at least one must be above 0; got two zeros")
    return first, second


def clip(value: float) -> float:
    """`value` brought into [0, 1]."""
    return min(1.0, max(0.0, value))


# ---------------------------------------------------------------- estimates over a window of scores


@dataclass(frozen=True, slots=True)
class WindowEstimate:
    """What a window says about the mean score; None where it holds too little to say it.

    `lower` and `upper` bound the mean at 95 %; `worst` and `best` are the means if everything that could not be
    scored had the lowest or highest value still possible. `effective_count` is of the scored observations. `lag1` is
    how far a score resembles the one before it, in [-1, 1].
    """

    mean: float | None
    lower: float | None
    upper: float | None
    worst: float | None
    best: float | None
    effective_count: float
    lag1: float | None


def weighted_mean(scores: ArrayLike, weights: ArrayLike) -> float | None:
    """Hajek estimate sum(w s) / sum(w); None for an empty window. Both have shape (n,)."""
    s, w = np.asarray(scores, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    total = float(w.sum())
    return float((w * s).sum()) / total if total > 0 else None


def effective_count(weights: ArrayLike) -> float:
    """Kish's effective number of equally weighted scores, (sum w)^2 / sum w^2; 0 for none."""
    w = np.asarray(weights, dtype=np.float64)
    squares = float((w * w).sum())
    return float(w.sum()) ** 2 / squares if squares > 0 else 0.0


def lag1_correlation(scores: ArrayLike) -> float | None:
    """Correlation of each score with the one before it, in [-1, 1]; `scores` of shape (n,) in order of time.

    The first autocorrelation coefficient (Box & Jenkins). None where all are alike or there are fewer than two.
    """
    off = np.asarray(scores, dtype=np.float64)
    off = off - off.mean() if off.size else off
    spread = float(off @ off)
    return float(off[1:] @ off[:-1]) / spread if spread > 1e-12 else None


def gaffke_interval(
    scores: ArrayLike, weights: ArrayLike, max_weight: float, level: float = 0.95
) -> tuple[float, float]:
    """Two-sided interval for the mean of scores in [0, 1] drawn with weights of at most `max_weight`.

    Gaffke's bound (Learned-Miller & Thomas, arXiv 1905.06208): a Bayesian bootstrap of the weighted scores with
    one pseudo-observation of the largest weight at 0 for the lower limit and at 1 for the upper. On 0/1 data of
    one weight that is Clopper-Pearson. It holds at each moment, not over all moments; its validity is conjectured
    (relative proof: Phan et al., arXiv 2106.03163). An empty window gives (0, 1).

    The bootstrap is not drawn: its quantile comes from the saddlepoint of the weighted sum of exponentials, so
    the limits do not depend on a seed or on the order of the scores, and cost O(n). (Sums of products rather than
    dot products: those wake BLAS threads, which on a busy machine take a hundred times longer.)
    """
    s, w = np.asarray(scores, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if s.size == 0:
        return 0.0, 1.0
    tail = (1.0 - level) / 2
    return _gaffke_lower(s, w, max_weight, tail), 1.0 - _gaffke_lower(1.0 - s, w, max_weight, tail)


def _gaffke_lower(s: Vector, w: Vector, max_weight: float, tail: float) -> float:
    """The `tail` quantile t of sum(w g s) / (sum(w g) + max_weight g0), where g are standard exponentials.

    P(sum <= t) is P(sum c g <= 0) with c = w (s - t) and -max_weight t. Found by false position (Illinois
    rule) on the normal scale, where it is almost a straight line.
    """
    s, w = np.append(s, 0.0), np.append(w, max_weight) / max_weight
    low, high = 0.0, float((w * s).sum() / w.sum())
    if high < 1e-9:  # nothing to tell from 0, and squares would vanish
        return 0.0
    z = -NormalDist().inv_cdf(tail)
    at_low, at_high, t = -4 * z, z, 0.0
    below: bool | None = None
    for _ in range(100):
        t = (low * at_high - high * at_low) / (at_high - at_low)
        error = _signed_root(w * (s - t)) + z
        if abs(error) < 1e-4:
            break
        if error < 0:
            low, at_low = t, error
            at_high /= 2 if below is True else 1
        else:
            high, at_high = t, error
            at_low /= 2 if below is False else 1
        below = error < 0
    return clip(t)


def _signed_root(c: Vector) -> float:
    """r* with P(sum c g <= 0) = Phi(r*), for standard exponentials g and a `c` of both signs.

    Source: Barndorff-Nielsen's r* at the saddlepoint u, where sum c / (1 - u c) = 0. At a tail of .025 the
    probability is right within .002 for one score and within .001 from 20 on.
    """
    low, high, u = 1 / float(c.min()), 1 / float(c.max()), 0.0
    q = c
    for _ in range(100):
        q = c / (1 - u * c)
        slope, curve = float(q.sum()), float((q * q).sum())
        if abs(slope) < 1e-9 * math.sqrt(curve):
            break
        low, high = (u, high) if slope < 0 else (low, u)
        u = u - slope / curve if low < u - slope / curve < high else (low + high) / 2
    r = math.copysign(math.sqrt(max(0.0, 2 * float(np.log1p(-u * c).sum()))), u)
    if abs(r) < 1e-6:
        return 0.0
    return r + math.log(u * math.sqrt(float((q * q).sum())) / r) / r


# ---------------------------------------------------------------- two runs over the same items


def sign_flip_p(differences: ArrayLike, weights: ArrayLike, draws: int = 20_000) -> float:
    """One-sided p value of paired differences, shape (n,): how likely a weighted mean as low as theirs is by chance.

    If nothing changed, each difference could as well have had the other sign (Fisher's sign-flip test). All signs are
    tried where at most 14 differences are not 0, else `draws` random ones from a fixed seed, with the observed signs
    counted among them (Phipson & Smyth 2010), so that the result is never 0. Nothing but zeros gives 1.
    """
    moved = np.asarray(differences, dtype=np.float64) * np.asarray(weights, dtype=np.float64)
    moved = moved[moved != 0]
    if moved.size == 0:
        return 1.0
    limit = float(moved.sum()) + 1e-12 * float(np.abs(moved).sum())
    if moved.size <= 14:
        signs = 1 - 2 * (np.arange(2**moved.size)[:, None] >> np.arange(moved.size) & 1)
        return float(np.mean((signs * moved).sum(axis=1) <= limit))
    random, low = np.random.default_rng(0), 1
    for start in range(0, draws, 1_000):
        signs = random.integers(0, 2, size=(min(1_000, draws - start), moved.size)) * 2 - 1
        low += int(np.count_nonzero((signs * moved).sum(axis=1) <= limit))
    return low / (draws + 1)


def mcnemar_p(worse: int, better: int) -> float:
    """One-sided exact McNemar test: how likely so many of the items that changed sides got worse by chance.

    The binomial tail P(X >= worse) of worse + better coin flips; 1 when none changed. ValueError for negative counts.
    """
    if min(worse, better) < 0:
        raise ValueError(f"counts are not negative; got {worse} and {better}")
    changed = worse + better
    return float(sum(math.comb(changed, k) for k in range(worse, changed + 1)) / 2**changed)


# ---------------------------------------------------------------- what people's labels say about the judge


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean with its 95 % limits; from how many answers, as equally weighted ones."""

    mean: float
    lower: float
    upper: float
    effective_count: float


def mean_and_variance(
    weight: float, weighted: float, squared: float, squared_score: float, squared_score_squared: float
) -> tuple[float, float]:
    """Hajek mean of scores and the variance of that mean, from sums of w, w s, w^2, w^2 s and w^2 s^2.

    ValueError without any weight.
    """
    if weight <= 0:
        raise ValueError("a mean needs a score")
    mean = weighted / weight
    spread = squared_score_squared - 2 * mean * squared_score + mean * mean * squared
    return mean, max(0.0, spread) / (weight * weight)


def corrected_mean(
    labels: ArrayLike, scores: ArrayLike, weights: ArrayLike, others: tuple[float, float] | None = None
) -> MeanEstimate:
    """The mean that people would give, from labels of some answers and the judge's scores of many others.

    `labels` and `scores` of the n answers that people labelled lie in [0, 1]; their `weights` are 1 / (probability of
    being scored x probability of being drawn for a label). All have shape (n,), n > 0. `others` are the mean of the
    judge's scores of answers without a label and the variance of that mean, or None.

    PPI++ (Angelopoulos, Duchi & Zrnic, arXiv 2311.01453) with Hajek means: k F + mean(label - k score), F the mean of
    the others; k in [0, 1] makes the variance least, so that a judge who tells nothing costs nothing. The limits are
    normal. Two made-up labels of the largest weight, 0 and 1, enter their variance: without them limits from a few
    heavy weights, or from labels that hardly differ, promise too much (they held 83 % of the time, now 94 to 98 %).
    """
    y, f, w = (np.asarray(each, dtype=np.float64) for each in (labels, scores, weights))
    total = float(w.sum())
    label, score = float((w * y).sum()) / total, float((w * f).sum()) / total
    off_y, off_f = w * (y - label) / total, w * (f - score) / total
    far, variance = others if others is not None else (score, 0.0)
    spread = float((off_f * off_f).sum()) + variance
    k = clip(float((off_y * off_f).sum()) / spread) if others is not None and spread > 0 else 0.0
    mean = label + k * (far - score)
    rest = off_y - k * off_f
    made_up = (float(w.max()) / total) ** 2 * (label**2 + (1 - label) ** 2)
    error = math.sqrt(float((rest * rest).sum()) + made_up + k * k * variance)
    margin = NormalDist().inv_cdf(0.975) * error
    return MeanEstimate(clip(mean), clip(mean - margin), clip(mean + margin), effective_count(w))


def judge_difference(labels: ArrayLike, scores: ArrayLike, weights: ArrayLike) -> MeanEstimate:
    """Mean of score - label in [-1, 1], above 0 where the judge is too kind; limits by Gaffke. Shapes (n,), n > 0."""
    w = np.asarray(weights, dtype=np.float64)
    off = np.asarray(scores, dtype=np.float64) - np.asarray(labels, dtype=np.float64)
    return MeanEstimate(*_mean_within(off, w, -1.0, 1.0), effective_count(w))


def agreement(agreed: ArrayLike, verdicts: ArrayLike, weights: ArrayLike) -> MeanEstimate:
    """Share of the verdicts in which judge and people agree.

    Of each of n answers: how many verdicts `agreed`, of how many `verdicts` (> 0), and its weight; shapes (n,), n > 0.
    Verdicts of one answer resemble each other, so the limits, Gaffke's, count answers rather than verdicts.
    """
    count = np.asarray(verdicts, dtype=np.float64)
    w = np.asarray(weights, dtype=np.float64) * count
    return MeanEstimate(*_mean_within(np.asarray(agreed, dtype=np.float64) / count, w, 0.0, 1.0), effective_count(w))


def _mean_within(values: Vector, w: Vector, lowest: float, highest: float) -> tuple[float, float, float]:
    """Hajek mean of values in [lowest, highest], and Gaffke's limits."""
    width = highest - lowest
    scaled = ((values - lowest) / width).clip(0.0, 1.0)
    lower, upper = gaffke_interval(scaled, w, float(w.max()))
    mean = float((w * scaled).sum()) / float(w.sum())
    return lowest + width * mean, lowest + width * lower, lowest + width * upper
