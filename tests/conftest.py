"""What every test shares: one event loop backend, fixed seeds, no network beyond loopback for model weights."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import phoenix_server

os.environ.setdefault("HF_HUB_OFFLINE", "1")
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture
def anyio_backend() -> str:
    """grpc.aio needs asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """A command that runs within the tests sends the logs to standard error, at its own level: undone behind it."""
    root, ours = logging.getLogger(), logging.getLogger("tracescore")
    handlers, level = root.handlers[:], ours.level
    yield
    ours.setLevel(level)
    for handler in root.handlers[:]:
        if handler not in handlers and type(handler) is logging.StreamHandler:
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[phoenix_server.Phoenix]:
    """One real Phoenix for all tests that need it: it takes half a minute to start."""
    with phoenix_server.running(tmp_path_factory.mktemp("phoenix")) as server:
        yield server
