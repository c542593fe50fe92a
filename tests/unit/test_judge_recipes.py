"""The recipes of docs/judges.md: each snippet is a configuration that `check` accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tracescore.cli.main import app

TEXT = (Path(__file__).parents[2] / "docs" / "judges.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## ([^\n]+)\n\n```yaml\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE))


def test_every_provider_has_its_recipe() -> None:
    wanted = "OpenAI, Azure, Anthropic, Gemini, Bedrock, Vertex, vLLM, Ollama, llama.cpp, TGI, OpenRouter"
    assert [name for name in wanted.split(", ") if not any(name in title for title in RECIPES)] == []


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_is_a_configuration_that_check_accepts(title: str, tmp_path, monkeypatch) -> None:
    for name in re.findall(r"env: (\w+)", RECIPES[title]):
        monkeypatch.setenv(name, "of-a-test")
    file = tmp_path / "tracescore.yaml"
    file.write_text(RECIPES[title], encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(file)])
    assert result.exit_code == 0, result.output
    assert "fine; judge" in result.output
