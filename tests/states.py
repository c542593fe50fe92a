"""The way of a state into the spool and out of it."""

from __future__ import annotations

from typing import Any

import orjson

from tracescore.spool.state import StateCodec


def reread(state: Any) -> Any:
    """The state as the next process reads it."""
    codec = StateCodec(type(state))
    return codec.load(orjson.loads(orjson.dumps(codec.plain(state))))
