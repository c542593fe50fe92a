"""`tracescore serve`: the service, until a signal ends it."""

from functools import partial
from typing import Annotated

import typer

from tracescore import logs
from tracescore.cli.options import ConfigPath, configured
from tracescore.cli.running import run_async, until_signal

OtlpOut = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Also send the scores to this OTLP endpoint (port 4317: gRPC, else HTTP)."),
]


def serve(config: ConfigPath = None, otlp_out: OtlpOut = None) -> None:
    """Receives spans over OTLP, scores their interactions, publishes the scores."""
    from tracescore.service import Service

    logs.to_stderr()
    service = Service(configured(config, otlp_out, secrets=True))
    run_async(partial(until_signal, service.run))
