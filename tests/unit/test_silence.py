"""What the service says when nothing comes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.gold_runs import write_set
from tracescore.config import Config
from tracescore.pipeline import silence

pytestmark = pytest.mark.anyio

PYTHON = {"kind": "python", "callable": "tests.unit.test_gold_run:echo"}
TRACE = {"kind": "trace", "url": "http://127.0.0.1:1"}


@pytest.mark.parametrize(("target", "level"), [(None, "WARNING"), (TRACE, "WARNING"), (PYTHON, "INFO")])
async def test_silence_is_a_warning_unless_it_may_be_meant(
    tmp_path: Path,
    target: dict[str, str] | None,
    level: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "tracescore")
    monkeypatch.setattr(silence, "_SILENCE", 0.0)
    gold = {"set": str(write_set(tmp_path / "s.jsonl")), "target": target}
    settings: dict[str, Any] = {"gold": gold} if target else {}
    await silence.remind(lambda: 0, {"grpc": "http://127.0.0.1:4317"}, Config.model_validate(settings).gold)
    assert [each.levelname for each in caplog.records if "event=nothing_received" in each.getMessage()] == [level]
