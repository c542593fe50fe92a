"""The command line: parses, calls, prints, and sets the exit status. Nothing else happens here.

Exit status: 0 fine, 1 a check failed, 2 wrong use or configuration. Errors are one line that says what to do.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Optional
from urllib.parse import urlsplit

import anyio
import typer
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.progress import Progress

from tracescore import __version__, logs
from tracescore.cli.drift import COMMANDS
from tracescore.cli.gold import gold
from tracescore.cli.options import ConfigPath, configured, lines_of, print_json, run_async
from tracescore.config import Config, EmbedderConfig, JudgeConfig
from tracescore.config import file as config_file
from tracescore.config.types import host_port
from tracescore.errors import ConfigError, TargetFailed, TracescoreError, UsageError
from tracescore.model import MEASURES

if TYPE_CHECKING:
    from tracescore.embedder import Embedder
    from tracescore.pipeline.scorer import Scorer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Scores live RAG traces and publishes the scores as Prometheus gauges and on the traces themselves.",
)

OtlpOut = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="URL", help="Also send the scores to this OTLP endpoint (port 4317: gRPC, else HTTP)."),
]

app.add_typer(gold, name="gold")

SCORE_KEYS = "A line each: question, answer, contexts?, reference?, history?"


def main() -> NoReturn:
    """Runs the command line and ends the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character is no reason to fail
    try:
        app()
    except (TracescoreError, BaseExceptionGroup) as error:
        ours = _ours(error)
        if ours is None:
            raise
        _refuse(ours)
    sys.exit(0)


def _refuse(error: BaseException) -> NoReturn:
    prefix = "" if isinstance(error, ConfigError) else "tracescore: "
    sys.stderr.write(f"{prefix}{error}\n")
    sys.exit(2)


def _ours(error: BaseException) -> TracescoreError | None:
    """The first error in a group of errors of ours; None where there are others too."""
    while isinstance(error, BaseExceptionGroup):
        if error.split(TracescoreError)[1] is not None:
            return None
        error = error.exceptions[0]
    return error if isinstance(error, TracescoreError) else None


@app.callback(invoke_without_command=True)
def root(*, version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    """Options of the program itself."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def serve(config: ConfigPath = None, otlp_out: OtlpOut = None) -> None:
    """Receives spans over OTLP, scores their interactions, publishes the scores."""
    from tracescore.service import Service

    logs.to_stderr()
    service = Service(configured(config, otlp_out, secrets=True))
    run_async(partial(_until_signal, service.run))


async def _until_signal(serve_until: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """Runs with a stop event that the first SIGTERM or SIGINT sets; a second one ends at once."""
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

            async def listen() -> None:
                async for _ in signals:
                    if stop.is_set():
                        logging.getLogger("tracescore.service").warning("event=second_signal")
                        tasks.cancel_scope.cancel()
                    stop.set()

            tasks.start_soon(listen)
            await serve_until(stop)
            tasks.cancel_scope.cancel()


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file.")],
    *,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also ask the judge, the embedder and the app of the gold set.")
    ] = False,
    scores_per_day: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", min=1, help="Of one service; for how soon a change of so many is told."),
    ] = None,
) -> None:
    """Validates a configuration and opens nothing; with --probe, asks those that it names."""
    logs.to_stderr(logging.ERROR)
    config = config_file.load(file, secrets=True)
    from tracescore.service import Service

    service = Service(config)
    if probe:
        failures: list[str] = []
        run_async(partial(_probe, service.scorer, config, failures))
        if failures:
            raise UsageError("\ntracescore: ".join(failures))
    asked = f", gold set {service.gold.runner.name}" if service.gold.runner else ""
    typer.echo(f"{file}: fine; judge {service.scorer.judge.name}, measures {', '.join(config.measures)}{asked}")
    _tell_power(config, scores_per_day)


def _tell_power(config: Config, scores_per_day: int | None) -> None:
    from tracescore.drift.power import report

    for line in report(config, scores_per_day):
        typer.echo(line)


async def _probe(scorer: Scorer, config: Config, failures: list[str]) -> None:
    """Asks the judge and, where one is needed, the embedder; says where it asked and adds what failed to `failures`."""
    asked: dict[str, Callable[[], Awaitable[str | None]]] = {}
    asked[f"judge {scorer.judge.name} {_where(config.judge)}"] = scorer.judge.probe
    if scorer.embedder is not None:
        asked[f"embedder {scorer.embedder.name} {_where(config.embedder)}"] = partial(_embed, scorer.embedder)
    if config.gold is not None:
        from tracescore.cli.gold_run import probe

        asked[f"gold set {config.gold.set}"] = partial(probe, config)
    try:
        for what, ask in asked.items():
            try:
                said = await ask()
            except (TracescoreError, BaseExceptionGroup) as error:
                ours = _ours(error)
                if ours is None:
                    raise
                setting = "gold.target: " if isinstance(ours, TargetFailed) else ""
                failures.append(f"{what}: {setting}{ours}")
            else:
                typer.echo(f"{what}: {said or 'answers'}")
    finally:
        await scorer.close()


async def _embed(embedder: Embedder) -> None:
    await embedder.embed(["Is anybody there?"])


def _where(settings: JudgeConfig | EmbedderConfig) -> str:
    """Where a judge or an embedder is asked; credentials that stand in its URL are not shown."""
    if settings.kind != "openai":
        return "in this process"
    url = urlsplit(settings.base_url)
    return f"at {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


@app.command()
def inspect(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="OTLP request bodies (.pb, .json).")],
    *,
    explain: Annotated[bool, typer.Option("--explain", help="Name the span and key of each field.")] = False,
    config: ConfigPath = None,
) -> None:
    """Prints what can be read out of OTLP files: one JSON line per interaction."""
    from tracescore.cli.inspect import inspect as inspected

    refused: list[TracescoreError] = []
    for row in inspected(files, configured(config).interactions, refused.append, explain=explain):
        print_json(row)
    for refusal in refused:
        sys.stderr.write(f"tracescore: {refusal}\n")
    if refused:
        raise typer.Exit(2)


@app.command()
def score(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help=SCORE_KEYS)],
    config: ConfigPath = None,
) -> None:
    """Scores a file of questions and answers: one JSON line in, the same with its scores out."""
    logs.to_stderr(logging.WARNING)
    settings = configured(config)
    lines = lines_of(file)
    refused: list[UsageError] = []
    run_async(partial(_score, lines, settings, refused.append))
    for refusal in refused:
        sys.stderr.write(f"{file}: {refusal}\n")
    if refused:
        raise typer.Exit(2)


async def _score(lines: list[bytes], config: Config, refuse: Callable[[UsageError], None]) -> None:
    from tracescore.cli import score as score_file
    from tracescore.pipeline.scorer import Scorer
    from tracescore.redaction import Redactor

    registry = CollectorRegistry()
    scorer, redactor = Scorer(config, MEASURES, registry), Redactor(config.redaction, registry)
    try:
        await scorer.judge.probe()
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("scoring", total=len(lines))
            async for row in score_file.score(lines, scorer.evaluators, scorer.judge, refuse, redactor.interaction):
                print_json(row)
                progress.advance(task)
    finally:
        await scorer.close()


for command in COMMANDS:
    app.command()(command)


@app.command()
def demo(
    *,
    exit_after: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="N", min=1, help="End once N (20 at least) are scored; status 1 unless they score as built."
        ),
    ] = None,
    send_to: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="HOST:PORT", help="Only the sample app, sending to your OTLP receiver (gRPC)."),
    ] = None,
) -> None:
    """A sample RAG app sends good and bad answers; watch how they score. Needs no key and no configuration."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]  # meant for other apps; the sample app's SDK reads them, some when it is imported
    from tracescore.demo import run as demo_run

    logs.to_stderr(logging.WARNING)
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the sample app says once what it says every time
    if send_to is not None:
        run_async(partial(_until_signal, partial(demo_run.send, _destination(send_to, exit_after))))
        return
    sys.stderr.write("Loading the embedded model ...\n")
    failures: list[str] = []

    async def run(stop: anyio.Event) -> None:
        failures.extend(await demo_run.run(stop, exit_after))

    run_async(partial(_until_signal, run))
    for failure in failures if exit_after else ():
        sys.stderr.write(f"tracescore demo: {failure}\n")
    if failures and exit_after:
        raise typer.Exit(1)


def _destination(send_to: str, exit_after: int | None) -> str:
    if exit_after is not None:
        raise UsageError("--send-to: nothing is scored here that --exit-after could count; use one of them")
    try:
        host, _ = host_port(send_to)
    except ValueError:
        host = ""
    if not host or "/" in host:
        raise UsageError(f"--send-to: HOST:PORT expected, such as 127.0.0.1:4317; got {send_to!r}")
    return send_to


if __name__ == "__main__":
    main()
