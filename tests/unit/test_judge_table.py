"""Judges and embedders are found in one table each, by the `kind` of the configuration."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest
from prometheus_client import CollectorRegistry

from tests.scripted import TableEmbedder
from tracescore.config import Config, EmbeddedJudgeConfig, OpenAIJudgeConfig
from tracescore.embedder import EMBEDDERS
from tracescore.errors import MissingExtra
from tracescore.judge import JUDGES, build_judge


def _kinds(section: type) -> set[str]:
    return set(get_args(section.model_fields["kind"].annotation))


def test_every_kind_that_can_be_configured_has_its_row() -> None:
    assert set(JUDGES) == _kinds(EmbeddedJudgeConfig) | _kinds(OpenAIJudgeConfig)
    kinds = [_kinds(each) for each in get_args(Config.model_fields["embedder"].annotation)]
    assert set(EMBEDDERS) == set().union(*kinds)


def test_the_embedded_judge_without_an_embedder_says_what_to_install_or_configure() -> None:
    with pytest.raises(MissingExtra) as error:
        build_judge(EmbeddedJudgeConfig(), None, CollectorRegistry())
    assert str(error.value) == (
        "judge: the embedded judge needs an embedder; install the extra `local`, or set judge.kind: openai"
    )


@pytest.mark.anyio
async def test_every_judge_shows_its_name_and_whether_it_is_ready() -> None:
    settings = OpenAIJudgeConfig(kind="openai", model="m", name="mine", base_url="http://127.0.0.1:9/v1")
    registry = CollectorRegistry()
    judge = build_judge(settings, TableEmbedder({}), registry)
    assert judge.name == "mine"
    assert registry.get_sample_value("tracescore_judge_ready", {"judge": "mine"}) == 0
    labels = next(s.labels for m in registry.collect() for s in m.samples if s.name == "tracescore_judge_info")
    assert (labels["judge"], labels["epoch"], labels["embedder"]) == ("mine", "0", "table")
    await judge.close()


def test_a_judge_on_the_network_brings_no_model_libraries() -> None:
    code = (
        "import sys, tracescore.judge.client, tracescore.embedder.openai, tracescore.evaluators;"
        "libraries = ('torch', 'sentence_transformers', 'transformers', 'onnxruntime', 'tokenizers');"
        "sys.exit(any(name in sys.modules for name in libraries))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
