"""How fast the embedded judge's model works: `python -m tests.benchmarks.embedded_speed`.

Texts per CPU second, of the bare model given 32 texts at a time, and of the embedder when 32 interactions each ask for
one at once. Texts are passages of some sixty words that nobody asked for before, so that nothing is remembered.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import anyio

from tests.local_judge import embedder
from tracescore.embedder.in_process import InProcessEmbedder

BATCH = 32
AIM = 0.8
"""Share of the bare model's texts per CPU second."""
_WORDS = "the fee for a bike kept over winter is four euros an hour and is paid at the desk by card or later".split()  # noqa: SIM905


def texts(chance: random.Random) -> list[str]:
    """New texts of like length."""
    return [" ".join([str(chance.randrange(10**6)), *chance.choices(_WORDS, k=60)]) for _ in range(BATCH)]


def _bare(model: InProcessEmbedder, some: list[str]) -> None:
    model._model.read(some)


def _asked(model: InProcessEmbedder, some: list[str]) -> None:
    async def ask() -> None:
        async with anyio.create_task_group() as tasks:
            for text in some:
                tasks.start_soon(model.embed, [text])

    anyio.run(ask)


def measure(rounds: int = 10) -> tuple[float, float]:
    """Texts per CPU second of the bare model and of the embedder, in turn."""
    model, chance = embedder(), random.Random(1)
    ways: tuple[Callable[[InProcessEmbedder, list[str]], None], ...] = (_bare, _asked)
    spent: dict[int, list[float]] = {0: [], 1: []}
    for turn in range(rounds + 1):
        for number, way in enumerate(ways):
            some = texts(chance)
            before = time.process_time()
            way(model, some)
            if turn:
                spent[number].append(time.process_time() - before)
    bare, asked = (BATCH / statistics.median(spent[number]) for number in (0, 1))
    return bare, asked


def main() -> None:
    """Prints the table."""
    bare, asked = measure()
    print(f"bare model {bare:8.0f} texts per CPU second\nembedder   {asked:8.0f}   {asked / bare:.2f}   (aim: {AIM})")


if __name__ == "__main__":
    main()
