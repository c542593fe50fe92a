"""`tracescore demo`: the sample app, with a service that scores its answers or without one."""

import logging
import os
import sys
from functools import partial
from typing import Annotated

import anyio
import typer

from tracescore import logs
from tracescore.cli.running import run_async, until_signal
from tracescore.errors import UsageError


def demo(
    *,
    exit_after: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Ask N questions, then end; status 1 unless the scores tell what is bad."
        ),
    ] = None,
    releases: Annotated[
        bool, typer.Option("--releases", help="Show two apps that each ship a bad release, and what is wrong with it.")
    ] = False,
    send_to: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Run only the sample app and send its spans to this OTLP/gRPC receiver."
        ),
    ] = None,
) -> None:
    """Run a sample RAG app and watch how its good and bad answers score. Needs no key and no configuration."""
    if send_to is None:
        sys.stderr.write("Loading the embedded judge; the first scores appear in a few seconds ...\n")
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]  # meant for other apps; the sample app's SDK reads them, some when it is imported
    from tracescore.demo import releases as demo_releases
    from tracescore.demo import run as demo_run

    logs.to_stderr(logging.WARNING)
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the sample app says once what it says every time
    if releases:
        logging.getLogger("tracescore.drift").setLevel(logging.ERROR)  # the end says it in a line
    if send_to is not None:
        run_async(partial(until_signal, partial(demo_run.send, _destination(send_to, exit_after, releases=releases))))
        return
    failures: list[str] = []

    async def run(stop: anyio.Event) -> None:
        failures.extend(await (demo_releases if releases else demo_run).run(stop, exit_after))

    run_async(partial(until_signal, run))
    for failure in failures if exit_after else ():
        sys.stderr.write(f"tracescore demo: {failure}\n")
    if failures and exit_after:
        raise typer.Exit(1)


def _destination(send_to: str, exit_after: int | None, *, releases: bool) -> str:
    if exit_after is not None or releases:
        other = "--releases" if releases else "--exit-after"
        raise UsageError(f"--send-to and {other}: the sample app alone scores nothing to count; use one of them")
    from tracescore.config.types import host_port

    try:
        host, _ = host_port(send_to)
    except ValueError:
        host = ""
    if not host or "/" in host:
        raise UsageError(f"--send-to: HOST:PORT expected, such as 127.0.0.1:4317; got {send_to!r}")
    return send_to
