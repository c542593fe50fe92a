"""What `serve` says once a minute of the scores: in plain words, by service, and nothing of an earlier process."""

from __future__ import annotations

import logging
from dataclasses import replace

import anyio
import pytest

from tests.web_results import result
from tracescore.cli import summary
from tracescore.cli.summary import MinuteSummary, said
from tracescore.model import Result, Score, Unscored

NOW = 1_000.0


def scored(value: float, service: str = "shop", finished: float = NOW, weight: float = 1.0) -> Result:
    made = result((Score("faithfulness", value), Unscored("completeness", "no_parts")))
    return replace(made, finished=finished, interaction=replace(made.interaction, service=service, weight=weight))


def test_means_are_weighted_and_what_has_no_score_is_said_with_its_reason() -> None:
    assert said([scored(1.0, weight=3.0), scored(0.0)]) == "faithfulness 0.75; without a score: 2 no_parts"
    assert said([result((Unscored("faithfulness", "no_contexts"),))]) == "no scores; without a score: 1 no_contexts"


@pytest.mark.anyio
async def test_the_first_score_is_said_at_once_and_the_others_together(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "tracescore.service")
    monkeypatch.setattr(summary, "_EVERY", 0.05)
    all_said = anyio.Event()

    def notice(record: logging.LogRecord) -> bool:
        if "more services" in record.getMessage():
            all_said.set()
        return True

    monkeypatch.setattr(logging.getLogger("tracescore.service"), "filters", [notice])
    shown = MinuteSummary(lambda: NOW)
    await shown.export(scored(0.9, finished=NOW - 1))
    assert caplog.messages == []
    await shown.export(scored(0.5))
    assert caplog.messages == [
        'event=summary service="shop" interactions=1 said="faithfulness 0.50; without a score: 1 no_parts"'
    ]
    for number in range(7):
        await shown.export(scored(1.0, f"service {number}"))
    assert len(caplog.messages) == 1
    with anyio.fail_after(5):
        await all_said.wait()
    assert caplog.messages[-1] == 'event=summary said="and 2 more services"'
    await shown.export(scored(0.0))
    await shown.close()
    await shown.close()
    assert sum("faithfulness 0.00" in message for message in caplog.messages) == 1
