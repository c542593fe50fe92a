"""`tracescore doctor`: what is well and what is not with a running service, and the fix."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Annotated

import typer

from tracescore.cli.options import AsJson, ConfigPath, configured, print_json
from tracescore.cli.page_client import address, fetch, trusting

if TYPE_CHECKING:
    from tracescore.cli.doctor_checks import Finding
    from tracescore.config import Config

_MARKS = {"ok": ("ok", "green"), "warn": ("look", "yellow"), "fail": ("fix", "red")}


def doctor(
    *,
    config: ConfigPath = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the metrics are, if not where the configuration says."),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A Prometheus to ask whether it scrapes the service and has its rules."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Examine a running service: spans, content, judge, Prometheus, clock. Exit status 1 when something needs a fix."""
    from rich.console import Console
    from rich.text import Text

    found, console = list(_examined(configured(config), metrics, prometheus)), Console()
    for each in found:
        if json:
            print_json(dataclasses.asdict(each))
            continue
        mark, colour = _MARKS[each.state]
        console.print(Text.assemble((f"{mark:4}", colour), f"  {each.name:10}  {each.said}"), soft_wrap=True)
        if each.fix:
            console.print(Text(f"{'':18}-> {each.fix}"), soft_wrap=True)
    if any(each.state == "fail" for each in found):
        raise typer.Exit(1)


def _examined(config: Config, metrics: str | None, prometheus: str | None) -> Iterator[Finding]:
    """The findings; only one where no service answers."""
    from tracescore.cli.doctor_checks import Exposition, Finding, findings
    from tracescore.cli.doctor_prometheus import prometheus_findings

    listener = config.exporters.prometheus
    base = address(listener, metrics, "--metrics", "exporters.prometheus.listen")
    try:
        tls = trusting(listener.tls, known=metrics is not None) if base.startswith("https:") else None
        secret = next(iter(listener.tokens.values()), None)
        token = secret.read("exporters.prometheus.tokens").split()[0] if secret else ""
        ready = fetch(f"{base}/-/ready", tls=tls)
        text = fetch(f"{base}/metrics", token, tls)
        reading = Exposition(text.body.decode())
    except (OSError, ValueError, HTTPException) as error:
        fix = "start it with tracescore serve, or say where its metrics are with --metrics URL"
        yield Finding("service", "fail", f"no tracescore answers at {base} ({error})", fix)
        return
    if text.status != 200 or "tracescore_judge_ready" not in reading:
        yield Finding("service", "fail", f"{base} is not a tracescore", "say where its metrics are with --metrics URL")
        return
    if ready.status == 200:
        yield Finding("service", "ok", f"answers at {base}")
    else:
        yield Finding("service", "fail", f"{ready.body.decode().strip()}", "see the log of the service")
    date = parsedate_to_datetime(text.date).timestamp() if text.date else None
    endpoints = f"http://{config.receiver.http.listen} (HTTP) or http://{config.receiver.grpc.listen} (gRPC)"
    yield from findings(reading, time.time(), date, endpoints)
    if prometheus is not None:
        yield from prometheus_findings(prometheus, base)
