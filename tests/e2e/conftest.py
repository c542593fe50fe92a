"""Who judges in several end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.openai_server import OpenAIServer, openai_server


@pytest.fixture
def judge() -> Iterator[OpenAIServer]:
    """A server that judges and embeds."""
    with openai_server() as server:
        yield server
