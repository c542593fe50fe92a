"""Every score and estimate as a pure function over numbers and arrays: the science on one page.

Scores follow the formulas of RAGAS 0.4.3 where they agree with it (see the parity test); they differ only where
a number would be invented: nothing measured gives None, never 0, 1 or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    """Mean cosine between the question and the questions generated from the answer, clipped to [0, 1] at the end.

    `question_vector` has shape (d,), `generated_vectors` (n, d). 0 when the answer is noncommittal; None when
    there is no generated question or a vector has no length. Source: RAGAS answer relevancy.
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


def faithfulness(supported: int, claims: int) -> float | None:
    """Supported claims over claims submitted (not over verdicts returned); None without claims.

    Raises ValueError unless 0 <= supported <= claims. Source: RAGAS faithfulness.
    """
    if not 0 <= supported <= claims:
        raise ValueError(f"0 <= supported <= claims expected; got {supported} of {claims}")
    return supported / claims if claims else None


def f_beta(tp: int, fp: int, fn: int, beta: float = 1.0) -> float | None:
    """F measure of claims: beta > 1 favours recall. None when there is nothing to compare (all are 0).

    Raises ValueError for negative counts and for a beta that is negative or not finite. Source: van
    Rijsbergen's F; RAGAS answer correctness.
    """
    if min(tp, fp, fn) < 0:
        raise ValueError(f"counts are not negative; got tp={tp}, fp={fp}, fn={fn}")
    if isinstance(beta, bool) or not (math.isfinite(beta) and beta >= 0):
        raise ValueError(f"beta is a finite number >= 0; got {beta!r}")
    if tp + fp + fn == 0:
        return None
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    if precision + recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


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


def weighted_mean(scores: ArrayLike, weights: ArrayLike) -> float | None:
    """Hajek estimate sum(w s) / sum(w); None for an empty window. Both have shape (n,)."""
    s, w = np.asarray(scores, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    total = float(w.sum())
    return float(w @ s) / total if total > 0 else None


def effective_count(weights: ArrayLike) -> float:
    """Kish's effective number of equally weighted scores, (sum w)^2 / sum w^2; 0 for none."""
    w = np.asarray(weights, dtype=np.float64)
    squares = float(w @ w)
    return float(w.sum()) ** 2 / squares if squares > 0 else 0.0


def gaffke_interval(
    scores: ArrayLike, weights: ArrayLike, max_weight: float, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Two-sided interval for the mean of scores in [0, 1] drawn with weights of at most `max_weight`.

    Gaffke's bound (Learned-Miller & Thomas, arXiv 1905.06208): a Bayesian bootstrap of the weighted scores with
    one pseudo-observation of the largest weight at 0 for the lower limit and at 1 for the upper. Equal to
    Clopper-Pearson on 0/1 data. It holds at each moment, not over all moments; its validity is conjectured
    (relative proof: Phan et al., arXiv 2106.03163). An empty window gives (0, 1).
    """
    s, w = np.asarray(scores, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if s.size == 0:
        return 0.0, 1.0
    gamma = np.random.default_rng(seed).standard_exponential((draws, s.size + 1))
    gamma[:, :-1] *= w
    gamma[:, -1] *= max_weight
    mass, known = gamma.sum(axis=1), gamma[:, :-1] @ s
    tail = (1.0 - level) / 2
    lower = float(np.quantile(known / mass, tail))
    upper = float(np.quantile((known + gamma[:, -1]) / mass, 1 - tail))
    return clip(lower), clip(upper)
