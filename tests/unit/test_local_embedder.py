"""The embedded model's worker: what shares a batch shares nothing else."""

from __future__ import annotations

import asyncio
import importlib.util

import numpy as np
import pytest

from tracescore.config import LocalEmbedder
from tracescore.embedder.sentence_transformers import SentenceTransformersEmbedder
from tracescore.errors import EmbedderError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.local,
    pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is None, reason="needs the extra `local`"),
]


async def test_a_text_that_the_model_cannot_read_fails_only_those_who_asked_for_it() -> None:
    embedder = SentenceTransformersEmbedder(LocalEmbedder())
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
