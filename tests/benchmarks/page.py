"""What the lists of the page cost with many interactions kept: `python -m tests.benchmarks.page [INTERACTIONS]`.

Prints the processor time of each address, and the longest that another task had to wait: for texts of usual length
(1,000 characters an answer, a third of them not ASCII), then for texts as long as the page keeps.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel

from tests.results import NOW, result
from tests.web_results import ask, pages
from tracescore.config import WebConfig
from tracescore.model import Evaluation, Item, Result, Score, Unscored
from tracescore.web.pages import Pages

ADDRESSES = (
    "/",
    "/services/s3?range=week",
    "/interactions",
    "/interactions?page=200",
    "/interactions?q=refund+straße",
    "/interactions?service=s3&faithfulness.max=0.5&sort=faithfulness",
    "/interactions?group=question&sort=faithfulness",
    "/interactions.csv?service=s3",
    "/interactions.jsonl?service=s3",
    "/api/v1/interactions?size=500",
)
_WORDS = "return window refund parcel Straße opened items within days Größe delivery café order invoice".split()  # noqa: SIM905


def results(count: int, characters: int) -> Iterator[Result]:
    """So many results of five services, with answers of about so many characters."""
    chance = random.Random(7)
    for number in range(1, count + 1):
        words = [chance.choice(_WORDS) for _ in range(characters // 7)]
        answer = " ".join(words) if number % 3 else " ".join(words).encode("ascii", "ignore").decode()
        items = tuple(Item("claim", f"claim {n}", "supported", "quote", 1.0, 0) for n in range(5))
        scores: list[Evaluation] = [Score("answer_relevancy", chance.random()), Score("completeness", chance.random())]
        scores.append(
            Unscored("faithfulness", "no_claims") if number % 9 == 0 else Score("faithfulness", 0.5, items=items)
        )
        told: dict[str, Any] = {
            "question": f"Question {number % 700} about {words[0]}?",
            "answer": answer,
            "contexts": (answer[:500],),
        }
        told["slices"] = {"route": f"/{number % 20}", "tenant": f"t{number % 3000}"}
        yield result(*scores, number=number, service=f"s{number % 5}", ended=NOW - number, **told)


async def filled(count: int, characters: int) -> Pages:
    """A page that keeps so many."""
    app = pages(WebConfig(keep=count))
    for each in results(count, characters):
        await app.history.export(each)
        await app.export(each)
    return app


async def cost(app: Pages, address: str) -> tuple[float, float]:
    """Seconds of the processor, and of the longest wait of another task."""
    longest, over = 0.0, anyio.Event()

    async def wait() -> None:
        nonlocal longest
        while not over.is_set():
            before = time.perf_counter()
            await anyio.lowlevel.checkpoint()
            longest = max(longest, time.perf_counter() - before)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        begun = time.process_time()
        reply = await ask(app, *address.split("?"))
        spent = time.process_time() - begun
        over.set()
    assert reply.status == 200, reply.body[:300]
    return spent, longest


async def main(count: int) -> None:
    """Prints the figures."""
    for characters, of in ((1_000, count), (20_000, count // 10)):
        app = await filled(of, characters)
        for address in ADDRESSES:
            spent, longest = min([await cost(app, address) for _ in range(3)])
            figures = f"{1e3 * spent:6.0f} ms, others wait {1e3 * longest:4.0f} ms"
            print(f"{of:6,} of {characters:6,} characters  {figures}  {address}")


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
