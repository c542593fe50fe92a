"""A real model server on the wire: llama.cpp with SmolLM2-135M, where `.ci/run` has put both.

The model is far too weak to judge. So the probe has to say so, with what the model failed at; and whatever it replies
to the operations, a measure ends in a number or in a named reason.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from prometheus_client import CollectorRegistry

from tests.judging import AnyEmbedder, failure
from tests.results import interaction
from tracescore.config import DEFAULT_MEASURES, EvaluatorsConfig, OpenAIJudgeConfig
from tracescore.errors import JudgeUnfit
from tracescore.evaluators import build_evaluators, evaluate_all
from tracescore.judge.client import OpenAIJudge
from tracescore.model import FailReason, Score, Unscored

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(900),  # it reads tens of tokens a second where the processor is shared
    pytest.mark.skipif("TRACESCORE_LLAMA" not in os.environ, reason="TRACESCORE_LLAMA: no environment with xllamacpp"),
]

SERVER = Path(__file__).parents[1] / "model_server.py"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The server's address; it reads 4,096 tokens at a time."""
    python = Path(os.environ["TRACESCORE_LLAMA"])
    model = next(python.parents[1].glob("*.gguf"))
    with ExitStack() as stack:
        server = subprocess.Popen([python, SERVER, model, "4096"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        stack.enter_context(server)
        stack.callback(server.terminate)
        assert server.stdout is not None
        yield server.stdout.readline().decode().strip()


def _judge(address: str, **settings: Any) -> OpenAIJudge:
    given = {"kind": "openai", "model": "smollm2", "base_url": f"{address}/v1", "context": 4096, "max_retries": 0}
    return OpenAIJudge(
        OpenAIJudgeConfig(**given | {"timeout": "4m", "deadline": "10m"} | settings), None, CollectorRegistry()
    )


async def test_a_model_too_weak_for_the_work_is_told_so_with_what_it_failed_at(address: str) -> None:
    judge, started = _judge(address), time.monotonic()
    error = await failure(judge.probe())
    await judge.close()
    print(f"refused after {time.monotonic() - started:.0f} s: {error.detail}")  # noqa: T201 - the figures of a run, with -rP
    assert isinstance(error, JudgeUnfit)
    # Each request has a boundary of its own, so that a model this weak fails now at the example, now at an end.
    cut_off, example = "the reply was cut off; set judge.context", "too weak for the work: it "
    assert cut_off in error.detail or (example in error.detail and "code word of locker" in error.detail)


async def test_whatever_it_replies_ends_in_a_number_or_in_a_named_reason(address: str) -> None:
    judge, started = _judge(address, timeout="90s", deadline="4m"), time.monotonic()
    asked = interaction(
        1,
        question="How long can items be returned?",
        answer="Items can be returned within 30 days.",
        contexts=("Items can be returned within 30 days of delivery.",),
    )
    evaluators = build_evaluators(DEFAULT_MEASURES, EvaluatorsConfig(), AnyEmbedder({}))
    result = await evaluate_all(asked, evaluators, judge, time.time)
    await judge.close()
    outcomes = [each.reason if isinstance(each, Unscored) else each.value for each in result.evaluations]
    print(f"{time.monotonic() - started:.0f} s, {result.usage}, {outcomes}")  # noqa: T201
    for each in result.evaluations:
        if isinstance(each, Score):
            assert 0 <= each.value <= 1
        else:
            assert isinstance(each, Unscored)
            assert each.reason in get_args(FailReason) or each.reason in {
                "no_parts",
                "no_claims",
                "no_questions",
                "abstained",
            }
    assert result.usage.input_tokens > 500  # a call that timed out is counted, and reads nothing that is known


async def test_a_call_that_takes_too_long_is_a_timeout_and_the_server_goes_on(address: str) -> None:
    judge = _judge(address, timeout="300ms")
    assert (await failure(judge.session("k").claims("", "Items can be returned. " * 40))).reason == "judge_timeout"
    await judge.close()
    judge = _judge(address)
    with anyio.move_on_after(1.0) as cancelled:
        await judge.session("k").claims("", "Items are blue. " * 40)
    await judge.close()
    assert cancelled.cancelled_caught
