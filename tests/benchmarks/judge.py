"""CPU per judge call of the whole client against a bare aiohttp loop that does the same calls in the same run.

    python -m tests.benchmarks.judge [--interactions 200]

A mock judge in a process of its own answers after a fixed time, in the rows with a `~` after a time that differs from
call to call by up to a half, as that of real models does: after one and the same time hundreds of replies come at one
moment, and all but the first of them wait for their turn. The client runs the three live measures with
everything included: prompts, retries, parsing, quotes, cache, metrics; vectors come from a table. The bare loop
posts the same bodies, at most as many at a time, and decodes the replies.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import aiohttp
import anyio
import numpy as np
import orjson
import uvloop
from aiohttp import web
from prometheus_client import CollectorRegistry

from tests.openai_server import Reply, Request, openai_server
from tracescore.config import EvaluatorsConfig, OpenAIJudgeConfig
from tracescore.evaluators import build_evaluators, evaluate_all
from tracescore.formulas import Vector
from tracescore.judge import build_judge
from tracescore.model import LIVE_MEASURES, Interaction
from tracescore.runtime import keep_pauses_short

PASSAGE = (
    "Items can be returned within 30 days of purchase. The refund goes to the card that was charged. "
    "Opened items are taken back only when they are faulty. Shipping costs are not refunded. "
) * 3
ANSWER = "Items can be returned within 30 days of purchase. Opened items are taken back only when they are faulty."
PARTS = ["the length of the return window", "whether opened items are covered"]
QUOTE = "Items can be returned within 30 days of purchase."
GOOD = {"verify_support": "supported", "verify_coverage": "covered"}


def interaction(number: int) -> Interaction:
    """An answer to a question that was never asked before, with three passages of 90 words."""
    return Interaction(
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        state="complete",
        question=f"Order {number}: what is the return window, and does it cover opened items?",
        answer=f"{ANSWER} This is about order {number}.",
        contexts=(PASSAGE, PASSAGE, PASSAGE),
    )


class TableEmbedder:
    """Vectors that cost nothing."""

    name = "table"

    async def embed(self, texts: Sequence[str]) -> Vector:
        """One and the same vector for every text."""
        return np.ones((len(texts), 384))

    async def close(self) -> None:
        """Nothing to release."""


# ---------------------------------------------------------------- the mock judge, in its own process


def reply(body: bytes) -> bytes:
    """A reply that every operation takes."""
    request = Request("", {}, body)
    prompt = request.prompt
    if prompt == "reverse_questions":
        value = {"words": "", "noncommittal": False, "questions": [f"When can items be returned ({n})?" for n in "123"]}
    elif prompt == "required_parts":
        value = {"standalone": request.data["question"], "parts": PARTS}
    elif prompt == "claims":
        claims = [{"from": row["id"], "text": row["text"]} for row in request.data["sentences"]]
        value = {"claims": claims, "without": []}
    else:
        rows = request.data["statements"]
        value = {"verdicts": [{"id": row["id"], "quote": QUOTE, "verdict": GOOD[prompt]} for row in rows]}
    message = {"role": "assistant", "content": orjson.dumps(value).decode()}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    usage = {"prompt_tokens": 900, "completion_tokens": 90}
    return orjson.dumps({"id": "1", "object": "chat.completion", "model": "mock", "choices": choices, "usage": usage})


async def serve(seconds: float, spread: float) -> None:
    """Answers each request `seconds` after it came, more or less by up to `spread` of them, and counts requests.

    What it tells of them is about those since it was last asked.
    """
    chance = random.Random(1)
    sizes: list[int] = []
    answered: list[float] = []

    async def answer(request: web.Request) -> web.Response:
        due = time.monotonic() + seconds * chance.uniform(1 - spread, 1 + spread)
        body = await request.read()
        sizes.append(len(body))
        content = reply(body)
        await asyncio.sleep(due - time.monotonic())
        answered.append(time.monotonic())
        return web.Response(body=content, content_type="application/json")

    async def report(_: web.Request) -> web.Response:
        quarter = len(answered) // 4
        steady = 2 * quarter / (answered[3 * quarter] - answered[quarter]) if quarter else 0.0
        found = {"calls": len(sizes), "bytes": sum(sizes), "steady": steady}
        sizes.clear()
        answered.clear()
        return web.json_response(found)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_get("/totals", report)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


# ---------------------------------------------------------------- what is measured


@dataclass(frozen=True)
class Run:
    """One way of doing the calls."""

    name: str
    calls: int
    sent: int
    interactions: int
    cpu: float
    wall: float
    steady: float
    """Calls per second while the second and the third quarter of them were answered: without start and end."""


async def totals(url: str) -> dict[str, float]:
    """What the mock has counted since it was last asked."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/totals") as response:
        return await response.json()


async def measured(name: str, url: str, count: int, work: Callable[[], Awaitable[None]]) -> Run:
    """CPU of this process, wall time, calls and bytes of `work`."""
    await totals(url)
    cpu, wall = time.process_time(), time.perf_counter()
    await work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    found = await totals(url)
    return Run(name, found["calls"], found["bytes"], count, cpu, wall, found["steady"])


def bodies() -> list[bytes]:
    """The five requests of one interaction, as the client sends them."""
    with openai_server(lambda request: Reply(raw=reply(request.raw))) as server:
        asyncio.run(_one(server.url))
        return [request.raw for request in server.requests]


async def _one(url: str) -> None:
    judge = _judge(url, 64, 60.0)
    await evaluate_all(interaction(0), _evaluators(), judge, time.time)
    await judge.close()


def _judge(url: str, in_flight: int, deadline: float):
    settings = OpenAIJudgeConfig(
        kind="openai", model="mock", base_url=url, max_concurrency=in_flight, deadline=f"{deadline}s"
    )
    return build_judge(settings, None, CollectorRegistry())


def _evaluators():
    return build_evaluators(LIVE_MEASURES, EvaluatorsConfig(), TableEmbedder())


async def client(url: str, in_flight: int, numbers: range) -> None:
    """All interactions through the client, enough of them side by side to keep `in_flight` calls going."""
    judge, evaluators = _judge(url, in_flight, 600.0), _evaluators()
    slots = asyncio.Semaphore(in_flight)

    async def one(number: int) -> None:
        async with slots:
            result = await evaluate_all(interaction(number), evaluators, judge, time.time)
            assert len(result.scores()) == 3, result.evaluations

    await asyncio.gather(*(one(number) for number in numbers))
    await judge.close()


async def bare(url: str, in_flight: int, count: int, requests: Sequence[bytes]) -> None:
    """The same calls by a loop of aiohttp alone: three at once, then two, for each interaction."""
    slots = asyncio.Semaphore(in_flight)
    first, then = requests[:3], requests[3:]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def post(body: bytes) -> None:
            async with slots, session.post(f"{url}/chat/completions", data=body) as response:
                orjson.loads(orjson.loads(await response.read())["choices"][0]["message"]["content"])

        async def one() -> None:
            await asyncio.gather(*(post(body) for body in first))
            await asyncio.gather(*(post(body) for body in then))

        await asyncio.gather(*(one() for _ in range(count)))


async def compare(
    port: int, seconds: float, spread: float, in_flight: int, count: int, requests: Sequence[bytes]
) -> None:
    """Prints both ways of doing `count` interactions."""
    root, url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}/v1"
    await client(url, in_flight, range(1_000_000, 1_000_020))
    await bare(url, in_flight, 20, requests)
    runs = [
        await measured("bare aiohttp", root, count, partial(bare, url, in_flight, count, requests)),
        await measured("tracescore", root, count, partial(client, url, in_flight, range(count))),
    ]
    bound = in_flight / seconds  # calls per second if nothing but the judge took time
    for run in runs:
        per_call, base = run.cpu / run.calls, runs[0].cpu / runs[0].calls
        took = f"{'~' if spread else ' '}{seconds * 1000:5.0f}"
        print(
            f"{took} {in_flight:9d}  {run.name:14} {run.calls / run.interactions:11.2f} "
            f"{run.sent / run.interactions:12.0f} {1000 * per_call:12.3f} {per_call / base:8.1f} "
            f"{3 * run.interactions / run.wall:9.0f} {run.calls / run.wall / bound:9.0%} "
            f"{run.steady / bound:7.0%}"
        )


async def as_in_the_service(work: Callable[[], Awaitable[None]]) -> None:
    """Runs `work` without full passes of the garbage collector."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_pauses_short)
        await work()
        tasks.cancel_scope.cancel()


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--interactions", type=int, default=200)
    parser.add_argument("--serve", type=float, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        asyncio.run(serve(*arguments.serve))
        return
    requests = bodies()
    print("    ms in flight  client         calls/inter. bytes/inter.  CPU ms/call  x bare  scores/s  of bound  steady")
    for seconds, spread, in_flight in ((0.05, 0.0, 64), (0.5, 0.0, 256), (0.5, 0.5, 256)):
        count = arguments.interactions * in_flight // 64  # enough to fill the slots
        command = [sys.executable, "-m", "tests.benchmarks.judge", "--serve", str(seconds), str(spread)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as mock:
            try:
                port = int(mock.stdout.readline())
                uvloop.run(as_in_the_service(partial(compare, port, seconds, spread, in_flight, count, requests)))
            finally:
                mock.kill()


if __name__ == "__main__":
    main()
