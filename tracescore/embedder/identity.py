"""Who answers: what tells one embedding model from another, whatever name either is configured by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np

from tracescore.formulas import Vector

PROBE = "The parcel was delivered on the third of May, two days late."
"""The text whose vector stands for the model. Everyday words, so that no model finds it blank or cuts it."""
SAME = 0.99
"""Least cosine between two vectors of PROBE by one model: rounding and other processors move it by less than .001,
while models that were trained, or cut down to whole numbers, in different ways lie below."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The vector of PROBE, each number in tenths of their root mean square: coarse enough for any processor."""

    numbers: tuple[int, ...]

    @classmethod
    def of(cls, vector: Vector) -> Self:
        """The identity of the model that gave PROBE this vector (d,)."""
        unit = np.sqrt(np.mean(np.square(vector))) / 10
        return cls(tuple(np.rint(vector / unit).astype(int).tolist() if unit > 0 else [0] * len(vector)))

    @property
    def mark(self) -> str:
        """The width of the vectors and 8 hex digits of the numbers, to be shown."""
        return f"{len(self.numbers)}-{hashlib.sha256(repr(self.numbers).encode()).hexdigest()[:8]}"

    def same(self, other: Identity) -> bool:
        """Whether both are of one model, as far as one vector can tell."""
        if len(self.numbers) != len(other.numbers):
            return False
        a, b = np.array(self.numbers, dtype=float), np.array(other.numbers, dtype=float)
        return self == other or float(a @ b) >= SAME * float(np.linalg.norm(a) * np.linalg.norm(b)) > 0
