"""What a running service saw of a gold run that another process made: whether it counted the answers as live ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import anyio
import anyio.to_thread

from tracescore.cli.page_client import ask
from tracescore.config import Config
from tracescore.errors import UsageError
from tracescore.gold.live import ADVICE, leaked, mark
from tracescore.gold.results import Run

_SENDING = 5.0
"""Seconds that exporters usually take to send."""
_LOOK_EVERY = 0.5
_MOST = 50
"""Answers that are compared: as many as one request may name."""


async def counted_as_live(config: Config, answers: Sequence[str | None], since: float) -> str:
    """What is wrong where the service counted most of these answers as live ones; empty where nothing is, or none runs.

    `since` is when the answers were given; the service reads a trace `assembly.idle` after its last span.
    """
    marks = [each for each in map(mark, answers) if each][:_MOST]
    until = since + config.assembly.idle + _SENDING
    while marks:
        request = partial(ask, config.web, None, "/api/v1/gold/live", {"answers": marks})
        try:
            live = (await anyio.to_thread.run_sync(request))["live"]
        except UsageError:  # none runs, or one that we may not ask
            return ""
        if leaked(live, len(marks)):
            return f"the running service counted {live} of {len(marks)} answers as live: {ADVICE}"
        if time.time() >= until:
            return ""
        await anyio.sleep(_LOOK_EVERY)
    return ""


async def note_of(config: Config, run: Run) -> tuple[str, ...]:
    """The same of a whole run, as a note for its report: half of it was answered in half of its time."""
    found = await counted_as_live(config, [each.answer for each in run.outcomes], (run.started + run.finished) / 2)
    return (f"traceparent: {found}",) if found else ()
