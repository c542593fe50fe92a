"""The OpenAI-compatible embedder against a real HTTP server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.openai_server import OpenAIServer, Reply, bag, openai_server
from tracescore.config import OpenAIEmbedderConfig
from tracescore.embedder import build_embedder
from tracescore.embedder.identity import PROBE
from tracescore.embedder.openai import OpenAIEmbedder
from tracescore.errors import EmbedderError

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    with openai_server() as running:
        yield running


@pytest.fixture
async def embedder(server: OpenAIServer) -> AsyncIterator[OpenAIEmbedder]:
    settings = OpenAIEmbedderConfig(kind="openai", model="e", base_url=server.url, max_retries=1)
    built = build_embedder(settings, CollectorRegistry())
    yield built
    await built.close()
    await built.close()


async def test_vectors_come_back_in_the_order_of_the_texts(server, embedder) -> None:
    texts = [f"word{n % 150} of {n % 7}" for n in range(300)]
    vectors = await embedder.embed(texts)
    assert vectors.dtype == np.float64
    assert np.array_equal(vectors, np.array([bag(text) for text in texts]))
    sent = [text for request in server.requests for text in request.body["input"][:-1]]
    assert len(server.requests) > 1
    assert len(sent) == len(set(sent)) == len(set(texts))
    assert {request.body["input"][-1] for request in server.requests} == {PROBE}
    assert max(len(request.body["input"]) for request in server.requests) == 128


async def test_no_texts_no_request(server, embedder) -> None:
    assert (await embedder.embed([])).shape[0] == 0
    assert server.requests == []


async def test_a_blank_text_is_refused_before_it_is_sent(server, embedder) -> None:
    with pytest.raises(EmbedderError, match="a blank text has no vector"):
        await embedder.embed(["a", " "])
    assert server.requests == []


def _rows(*rows) -> Reply:
    return Reply(raw=json.dumps({"data": [{"index": at, "embedding": row} for at, row in rows]}).encode())


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (_rows((0, [1.0]), (1, [1.0])), "3 vectors expected; got 2"),
        (_rows((0, [1.0]), (0, [2.0]), (1, [3.0])), "3 vectors expected; got 3"),
        (_rows((0, [1.0]), (1, [1.0, 2.0])), "the reply does not hold vectors of one length"),
        (_rows((0, []), (1, []), (2, [])), "3 vectors expected; got 3"),
        (_rows((0, ["a"]), (1, ["b"])), "the reply does not hold vectors of one length"),
        (
            Reply(raw=b'{"data": [{"index": 0, "embedding": [1e999]}, {"index": 1, "embedding": [1.0]}]}'),
            "not finite|JSON",
        ),
        (Reply(raw=b'{"data": "none"}'), "3 vectors expected; got 0"),
        (Reply(raw=b"<html>"), "the answer is not a JSON object"),
        (Reply.error(401), "unfit: HTTP 401: access denied; check embedder.api_key"),
        (Reply.error(429, "insufficient_quota"), "quota"),
    ],
)
async def test_a_reply_without_proper_vectors_is_an_error(server, embedder, reply, message) -> None:
    server.queue(*[reply] * 9)
    with pytest.raises(EmbedderError, match=message):
        await embedder.embed(["a", "b"])


async def test_a_failure_that_may_pass_is_tried_again(server, embedder) -> None:
    server.queue(Reply.error(503, headers={"Retry-After": "0"}))
    assert (await embedder.embed(["a"])).shape == (1, 256)


async def test_what_another_model_answers_is_not_used_before_it_has_answered_five_times_in_a_row(
    server, embedder
) -> None:
    assert embedder.identity is None
    await embedder.embed(["a"])
    assert embedder.identity.mark.startswith("256-")
    for width in (96, 96, 96, 96, 256, 96, 96, 96, 96, 96):
        server.width = width
        assert embedder.identity.mark.startswith("256-")
        if width == 256:
            assert (await embedder.embed(["a"])).shape == (1, 256)
        else:
            with pytest.raises(EmbedderError, match=r"another model answers: 96-\w+, not 256-\w+;"):
                await embedder.embed(["a"])
    assert embedder.identity.mark.startswith("96-")
    assert (await embedder.embed(["a"])).shape == (1, 96)


async def test_vectors_of_the_same_length_by_another_model_are_noticed(server, embedder) -> None:
    await embedder.embed(["a"])
    server.vectors[PROBE] = bag("quite other words", 256)
    with pytest.raises(EmbedderError, match="another model answers"):
        await embedder.embed(["a"])


LIMITS = {
    "TEI": (413, {"error": "batch size 129 > maximum allowed batch size 32", "error_type": "Validation"}, 32),
    "OpenAI": (
        400,
        {"error": {"message": "'input': array too long. Expected maximum length 96, got length 128."}},
        96,
    ),
    "Gemini": (400, [{"error": {"code": 400, "message": "at most 100 requests can be in one batch"}}], 100),
}


@pytest.mark.parametrize(("status", "body", "limit"), LIMITS.values(), ids=LIMITS)
async def test_a_limit_of_texts_per_request_that_a_server_names_is_kept(server, embedder, status, body, limit) -> None:
    server.refuse_texts = (limit, Reply(status=status, raw=json.dumps(body).encode()))
    for _ in range(2):
        assert (await embedder.embed([f"text {n}" for n in range(200)])).shape == (200, 256)
    sizes = [len(request.body["input"]) for request in server.requests]
    assert sum(size > limit for size in sizes) <= 2
    assert all(size <= limit for size in sizes[-4:])


async def test_vectors_in_base64_are_read_whatever_was_asked_for(server, embedder) -> None:
    plain = await embedder.embed(["one", "two words"])
    server.base64 = True
    assert np.allclose(await embedder.embed(["one", "two words"]), plain)
