"""What every test shares: one event loop backend, fixed seeds, no network beyond loopback for model weights."""

from __future__ import annotations

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


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[phoenix_server.Phoenix]:
    """One real Phoenix for all tests that need it: it takes half a minute to start."""
    with phoenix_server.running(tmp_path_factory.mktemp("phoenix")) as server:
        yield server
