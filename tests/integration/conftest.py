"""What several integration tests send to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.otlp_sink import Sink, otlp_sink


@pytest.fixture(scope="module")
def running_sink() -> Iterator[Sink]:
    with otlp_sink() as sink:
        yield sink


@pytest.fixture
def sink(running_sink: Sink) -> Sink:
    """A real OTLP destination over both protocols, with nothing in it yet."""
    running_sink.clear()
    return running_sink
