"""Evidence that is too long for one request: the passages that the statements at hand are most likely about.

A statement is judged once, against one window. Asking "is it supported by any window?" instead would add up the
judge's false supports: 5 % per window become 26 % over six.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
import numpy as np

from tracescore.embedder import Embedder
from tracescore.errors import EmbedderError
from tracescore.formulas import Vector
from tracescore.judge.prompt import tokens
from tracescore.judge.quotes import fold
from tracescore.judge.sentences import split

PASSAGE = 400
"""Tokens of a passage: long enough to be understood, short enough that a window holds many."""


def passages(evidence: Sequence[str], size: int = PASSAGE) -> list[str]:
    """The texts cut at sentence ends into pieces of about `size` tokens; a longer sentence is cut anywhere."""
    pieces: list[str] = []
    for text in evidence:
        current: list[str] = []
        used = 0
        for sentence in split(text):
            for start in range(0, len(sentence), 3 * size):
                part = sentence[start : start + 3 * size]
                needed = len(part.encode()) + 1
                if current and (used + needed) // 3 > size:
                    pieces.append(" ".join(current))
                    current, used = [], 0
                current.append(part)
                used += needed
        if current:
            pieces.append(" ".join(current))
    return pieces


async def nearness(statements: Sequence[str], pieces: Sequence[str], embedder: Embedder | None) -> Vector:
    """Array (statements, pieces), larger for nearer: cosines, or shared letter groups where nothing embeds."""
    if embedder is not None:
        try:
            vectors = await embedder.embed([*statements, *pieces])
        except EmbedderError:
            pass
        else:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            near: Vector = vectors[: len(statements)] @ vectors[len(statements) :].T
            return near
    return await anyio.to_thread.run_sync(_shared_letters, statements, pieces)


def _shared_letters(statements: Sequence[str], pieces: Sequence[str]) -> Vector:
    wanted = [_groups(statement) for statement in statements]
    shared = [[len(want & group) / max(1, len(want)) for want in wanted] for group in map(_groups, pieces)]
    return np.array(shared).T


def _groups(text: str) -> set[str]:
    folded = fold(text)
    return {folded[at : at + 3] for at in range(max(1, len(folded) - 2))}


def window(near: Vector, pieces: Sequence[str], room: int) -> list[str]:
    """The pieces that fit in `room` tokens, taken in turn for each row of `near`, in their original order."""
    chosen: set[int] = set()
    for column in np.argsort(-near, axis=1, kind="stable").T:
        for index in (int(index) for index in column):
            if index in chosen:
                continue
            size = tokens(pieces[index])
            if size > room:
                return [pieces[at] for at in sorted(chosen)]
            chosen.add(index)
            room -= size
    return [pieces[at] for at in sorted(chosen)]
