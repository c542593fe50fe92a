"""The commonest first mistake is an app that sends elsewhere: silence is said once."""

import logging
from collections.abc import Callable, Mapping

import anyio

from tracescore.config.gold import GoldConfig

_log = logging.getLogger("tracescore.service")

_SILENCE = 60.0
"""Seconds without a single span after which the log says where to send to."""


async def remind(spans_received: Callable[[], int], endpoints: Mapping[str, str], gold: GoldConfig | None) -> None:
    """Says where to send to when nothing came; `endpoints` by values of OTEL_EXPORTER_OTLP_PROTOCOL.

    It may be meant where a gold set is asked for its answers and not for its traces: then nothing is wrong.
    """
    await anyio.sleep(_SILENCE)
    if not spans_received():
        where = "; ".join(f"OTEL_EXPORTER_OTLP_PROTOCOL={name} -> {url}" for name, url in endpoints.items())
        level = logging.INFO if gold is not None and gold.target.kind != "trace" else logging.WARNING
        _log.log(level, 'event=nothing_received seconds=%.0f advice="%s"', _SILENCE, where)
