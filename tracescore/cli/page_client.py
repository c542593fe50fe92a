"""Asks the service that runs, by the listener of its page: what `tracescore baseline` and `anchors` do."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tracescore.config import WebConfig
from tracescore.config.types import host_port
from tracescore.errors import UsageError

_SECONDS = 10
_HEAD = (
    f"  {'detector':23} {'against':9} {'state':10} {'baseline':>8} {'reference':>9} {'scores':>8}  "
    f"{'release change':22} evidence"
)


def address(settings: WebConfig, page: str | None) -> str:
    """Base URL of the page: `page` where it is given, else where the configuration has it listen.

    UsageError when that is any free port.
    """
    if page is not None:
        if not page.startswith(("http://", "https://")):
            raise UsageError(f"--page: a URL such as http://127.0.0.1:9465 expected; got {page!r}")
        return page.rstrip("/")
    host, port = host_port(settings.listen)
    if port == 0:
        raise UsageError("web.listen is any free port: say where the page is with --page URL")
    host = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - where all addresses listen, this does
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def ask(settings: WebConfig, page: str | None, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """The JSON that the service answers with; with a body it is asked to change something.

    UsageError when it refuses or is not there.
    """
    base = address(settings, page)
    headers = {"x-tracescore": "1", "content-type": "application/json"}
    if settings.token is not None:
        headers["authorization"] = f"Bearer {settings.token.read('web.token')}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}{path}", data, headers)  # noqa: S310 - http or https, see above
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise UsageError(f"{base}: {_reason(error)}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise UsageError(
            f"{base}: no tracescore answers there ({why}); is it running with this configuration?"
        ) from None


def _reason(error: urllib.error.HTTPError) -> str:
    if error.code == 401:
        return "wants its token: name the configuration of the service with -c"
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return f"answered {error.code}; is it a tracescore page of this version?"


def table(shown: Mapping[str, Any]) -> Iterator[str]:
    """What `baseline show` prints, line by line."""
    threshold = shown["threshold_days"]
    if not shown["services"]:
        yield "No scores yet: nothing is watched."
    for service in shown["services"]:
        yield f"{service['service']} ({service['environment']}): {_sentence(service)}"
        yield _HEAD
        for each in service["detectors"]:
            learned, reference = (_number(each[key]) for key in ("baseline_ratio", "reference_ratio"))
            evidence = f"{100 * min(1, each['evidence_days'] / threshold):.1f} %"
            yield (
                f"  {each['detector']:23} {each['against']:9} {each['state']:10} {learned:>8} {reference:>9} "
                f"{each['scores']:8,}  {_change(each):22} {evidence:>7}{_since(each)}"
            )
        if any(each["by_block_advised"] for each in service["detectors"]):
            yield "  Scores swing over the day: set `drift.reference: by_block`, then `tracescore baseline reset`"


def learning(shown: Mapping[str, Any], service: str | None, detector: str | None) -> list[str]:
    """Detectors, of all services or one and of all names or one, that do not know yet what is normal."""
    every = [each for one in shown["services"] if service in (None, one["service"]) for each in one["detectors"]]
    return sorted({d["detector"] for d in every if d["state"] == "learning" and detector in (None, d["detector"])})


def _sentence(service: Mapping[str, Any]) -> str:
    if service["verdict"] == "none":
        return str(service["advice"])
    return f"{service['pattern']}, {service['verdict']}. {service['advice']}"


def _since(detector: Mapping[str, Any]) -> str:
    if detector["learned_at"] is not None:
        return f", learned on {_moment(detector['learned_at'])} at the earliest"
    if detector["change_timestamp_seconds"] is None:
        return ""
    return (
        f", falling since about {_moment(detector['change_timestamp_seconds'])} ({detector['change_scores']:,} scores)"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _change(detector: Mapping[str, Any]) -> str:
    """The newest release less the one before."""
    if detector["release_change"] is None:
        return "-"
    mean, lower, upper = detector["release_change"]
    return f"{mean:+.3f} ({lower:+.3f}, {upper:+.3f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
