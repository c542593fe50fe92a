"""The worker of a model in this process: what shares a batch shares nothing else."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import local_judge
from tracescore.config import MiniLMEmbedderConfig
from tracescore.embedder.in_process import batches
from tracescore.embedder.minilm import MiniLMEmbedder
from tracescore.errors import EmbedderError

pytestmark = [pytest.mark.anyio, *local_judge.NEEDS_MODEL]


async def test_a_text_that_the_model_cannot_read_fails_only_those_who_asked_for_it() -> None:
    embedder = MiniLMEmbedder(MiniLMEmbedderConfig())
    blocked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:  # until all three wait, so that they are one batch
        asyncio.run_coroutine_threadsafe(blocked.wait(), loop).result()

    holding = asyncio.create_task(embedder.run(hold))
    await asyncio.sleep(0)
    texts = (["one"], ["half \ud83d"], ["two", "three"])
    asking = [asyncio.create_task(embedder.embed(some)) for some in texts]
    await asyncio.sleep(0)
    blocked.set()
    await holding
    first, broken, last = await asyncio.gather(*asking, return_exceptions=True)
    await embedder.close()
    assert isinstance(broken, EmbedderError)
    assert "the model failed" in str(broken)
    assert isinstance(first, np.ndarray)
    assert isinstance(last, np.ndarray)
    assert (first.shape[0], last.shape[0]) == (1, 2)


async def test_vectors_come_in_the_order_asked_for_and_equal_texts_share_one() -> None:
    embedder = local_judge.embedder()
    first, second = await asyncio.gather(embedder.embed(["b", "a a a a", "b"]), embedder.embed(["a a a a"]))
    assert first.shape == (3, 384)
    assert first.dtype == np.float64
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[1], second[0])
    assert (await embedder.embed([])).shape == (0, 384)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts niceness by thread")
async def test_the_threads_of_a_model_stand_back_behind_the_event_loop() -> None:
    def niceness() -> dict[int, int]:
        threads = (int(each.name) for each in Path("/proc/self/task").iterdir())
        return {thread: os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}

    before, ours = niceness(), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    embedder = MiniLMEmbedder(MiniLMEmbedderConfig(threads=3))
    await embedder.embed(["text"])
    of_model = [nice for thread, nice in niceness().items() if thread not in before]
    await embedder.close()
    assert len(of_model) == 3
    assert all(nice > ours for nice in of_model)


async def test_a_large_request_lets_small_ones_pass() -> None:
    embedder = local_judge.embedder()
    many = asyncio.create_task(embedder.embed([f"Passage {n}: {'words and more words ' * 50}" for n in range(40)]))
    await asyncio.sleep(0)
    await embedder.embed(["A short question?"])
    assert not many.done()
    assert (await many).shape == (40, 384)


async def test_the_step_that_runs_is_the_last_of_a_request_that_was_given_up() -> None:
    embedder = MiniLMEmbedder(MiniLMEmbedderConfig())
    computed: list[int] = []
    embed, began = embedder._embed, asyncio.Event()
    loop = asyncio.get_running_loop()

    def counted(texts):
        computed.append(len(texts))
        loop.call_soon_threadsafe(began.set)
        return embed(texts)

    embedder._embed = counted
    asking = asyncio.create_task(embedder.embed(["words " * 500] * 100))
    await began.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await embedder.run(lambda: None)
    await embedder.close()
    assert computed == [2]


async def test_what_lies_beyond_the_reach_of_the_model_costs_nothing() -> None:
    first, second = await asyncio.gather(
        local_judge.embedder().embed(["What? " + "word " * 4_000]),
        local_judge.embedder().embed(["What? " + "word " * 4_000_000]),
    )
    assert np.array_equal(first, second)


async def test_tokens_are_told_by_their_place_in_the_text() -> None:
    text = "Unbelievable: 4 percent"
    (encoded,) = await local_judge.embedder().run(lambda: local_judge.embedder().encode([text]))
    assert "".join(text[start:end] for start, end in encoded.spans) == text.replace(" ", "")
    assert encoded.tokens.shape == (len(encoded.spans), 384)
    assert np.linalg.norm(encoded.tokens, axis=1) == pytest.approx(1, abs=1e-5)
    assert encoded.rarity.min() >= 0
    assert encoded.rarity.max() <= 1


async def test_a_closed_embedder_says_so() -> None:
    embedder = MiniLMEmbedder(MiniLMEmbedderConfig())
    await embedder.close()
    await embedder.close()
    with pytest.raises(EmbedderError, match="the embedder was closed"):
        await embedder.embed(["late"])


def test_the_model_loads_without_network_and_in_silence() -> None:
    code = """
import asyncio, socket, sys
def refuse(*_): raise OSError("no network in this test")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from tracescore.config import MiniLMEmbedderConfig
from tracescore.embedder.minilm import MiniLMEmbedder
print(asyncio.run(MiniLMEmbedder(MiniLMEmbedderConfig()).embed(["text"])).shape)
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("(1, 384)\n", "")


async def test_the_error_of_a_text_that_the_model_cannot_read_is_freed_at_once() -> None:
    embedder = local_judge.embedder()
    gc.disable()
    try:
        with pytest.raises(EmbedderError):
            await embedder.embed(["half \ud83d"])
        await embedder.run(list)  # by then the thread of the model has let go of it as well
        assert not [each for each in gc.get_objects() if type(each) is EmbedderError]
    finally:
        gc.enable()


@settings(max_examples=50)
@given(st.lists(st.integers(1, 100)), st.integers(1, 200))
def test_every_text_is_in_one_batch_and_no_batch_is_too_large_unless_it_is_one_text(sizes, most) -> None:
    found = list(batches(sizes, most))
    assert sorted(i for batch in found for i in batch) == list(range(len(sizes)))
    assert all(len(batch) == 1 or len(batch) * max(sizes[i] for i in batch) <= most for batch in found)
