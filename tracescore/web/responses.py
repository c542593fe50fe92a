"""The two kinds of responses there are: pages, and JSON for the command line."""

from typing import Any

import orjson

from tracescore.net.asgi import Response


def html(status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A page."""
    return Response(status, body, "text/html; charset=utf-8", headers)


def as_json(status: int, value: Any) -> Response:
    """Plain data."""
    return Response(status, orjson.dumps(value), "application/json")


def refused(status: int, why: str) -> Response:
    """What the command line prints as an error."""
    return as_json(status, {"error": why})
