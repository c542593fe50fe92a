"""What commands ask of a Prometheus, over its HTTP API."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode

from tracescore.cli.page_client import exchange, trusting
from tracescore.errors import UsageError


def ask(url: str, path: str, **fields: str) -> dict[str, Any]:
    """The `data` of an answer; UsageError when no Prometheus answers at `url`."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--prometheus: a URL such as http://127.0.0.1:9090 expected; got {url!r}")
    try:
        tls = trusting(None, known=True) if url.startswith("https:") else None
        status, content = exchange("GET", f"{url.rstrip('/')}/api/v1/{path}?{urlencode(fields)}", None, {}, tls)
        answered = json.loads(content)
        if status == HTTPStatus.OK:
            data: dict[str, Any] = answered["data"]
            return data
        reason = answered.get("error", status)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, HTTPException) as error:
        reason = error
    raise UsageError(f"{url}: no Prometheus answers there ({reason})")


def series(url: str, path: str, **fields: str) -> list[dict[str, Any]]:
    """The series of a query. UsageError as from `ask`."""
    try:
        found: list[dict[str, Any]] = ask(url, path, **fields)["result"]
    except (LookupError, TypeError):
        raise UsageError(f"{url}: no Prometheus answers there (an answer without a result)") from None
    return found
