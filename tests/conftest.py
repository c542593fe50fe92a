"""What every test shares: one event loop backend, fixed seeds, no network beyond loopback for model weights."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture
def anyio_backend() -> str:
    """grpc.aio needs asyncio."""
    return "asyncio"
