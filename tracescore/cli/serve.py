"""`tracescore serve`: the service, until a signal ends it."""

import logging
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from tracescore import logs
from tracescore.cli.options import ConfigPath, Overrides, configured
from tracescore.cli.running import run_async, until_signal


class LogLevel(StrEnum):
    """How much the log says."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def _listens(what: str) -> Any:
    return typer.Option(metavar="HOST:PORT", help=f"Where {what}; port 0: any free one.")


def serve(
    *,
    config: ConfigPath = None,
    otlp_out: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Also send scores to this OTLP endpoint (port 4317: gRPC, else HTTP)."),
    ] = None,
    http: Annotated[str | None, _listens("OTLP/HTTP arrives [127.0.0.1:4318]")] = None,
    grpc: Annotated[str | None, _listens("OTLP/gRPC arrives [127.0.0.1:4317]")] = None,
    metrics: Annotated[str | None, _listens("/metrics is [127.0.0.1:9464]")] = None,
    page: Annotated[str | None, _listens("the page is [127.0.0.1:9465]")] = None,
    log_level: Annotated[LogLevel, typer.Option(metavar="LEVEL", help="debug, info, warning, error.")] = LogLevel.info,
) -> None:
    """Receive spans over OTLP, score their interactions and publish the scores."""
    from tracescore.cli.summary import MinuteSummary
    from tracescore.service import Service

    logs.to_stderr(logging.getLevelNamesMapping()[log_level.value.upper()])
    overrides = Overrides(otlp_out=otlp_out, http=http, grpc=grpc, metrics=metrics, page=page)
    service = Service(configured(config, overrides, secrets=True), watchers=[MinuteSummary()])
    run_async(partial(until_signal, service.run))
