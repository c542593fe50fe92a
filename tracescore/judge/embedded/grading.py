"""Features -> a credit in [0, 1]: three small logistic models, whose numbers stand in `coefficients.json`.

The file names the script that fitted it and the prior it was fitted at. Its hash is part of the judge's fingerprint:
scores under other coefficients are other scores.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from tracescore.errors import UsageError

GRADED = ("support", "reference", "relevancy")
"""What is graded: a claim by passages, a claim by its counterpart, an answer by its question."""


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic regression over features by name. Features without a weight count nothing."""

    intercept: float
    weights: Mapping[str, float]

    def grade(self, features: Mapping[str, float]) -> float:
        """1 / (1 + exp(-z)) of the weighted sum z."""
        z = self.intercept + sum(weight * features[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The models of GRADED by name; `digest` is 12 hex digits of the file they came from."""

    models: Mapping[str, Model]
    digest: str

    def grade(self, graded: str, features: Mapping[str, float]) -> float:
        """The credit that the model `graded` gives."""
        return self.models[graded].grade(features)


def load(path: str | None = None) -> Coefficients:
    """The coefficients of `path`, or the ones that come with the judge; UsageError for a file that is none."""
    source = Path(path) if path else files(__package__) / "coefficients.json"
    try:
        text = source.read_bytes()
        found: dict[str, Any] = json.loads(text)
        models = {name: Model(float(found[name]["intercept"]), _weights(found[name]["weights"])) for name in GRADED}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = str(error) or type(error).__name__
        raise UsageError(
            f"judge.coefficients: {source}: a file of tests/benchmarks/fit_embedded.py expected; got {reason}"
        ) from None
    return Coefficients(models, hashlib.sha256(text).hexdigest()[:12])


def _weights(found: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(weight) for name, weight in found.items()}
