"""`tracescore gold`: the commands of the gold set. What a run does stands in `gold_run.py`."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracescore import logs
from tracescore.cli.options import AsJson, ConfigPath, configured, print_json
from tracescore.cli.running import run_async

if TYPE_CHECKING:
    from tracescore.cli.gold_checks import Checks
    from tracescore.config import Config

gold = typer.Typer(no_args_is_help=True, help="Ask the app questions with known answers.")


@gold.command("run")
def gold_run(
    *,
    config: ConfigPath = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="[MEASURE=]VALUE", help="Fail when the mean is lower; without MEASURE: factual."),
    ] = None,
    compare_with: Annotated[
        str | None,
        typer.Option(metavar="PINNED|LAST|FILE.json", help="Fail when a measure dropped against it."),
    ] = None,
    report: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Write a report: FILE.md, .json or .xml (JUnit).")
    ] = None,
    release: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The release that answers, where neither reply nor traces say.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Ask the app the whole gold set now and score the answers. Exit status 1 when a check fails."""
    from tracescore.cli.gold_checks import Checks

    logs.to_stderr(logging.WARNING if sys.stderr.isatty() else logging.INFO)
    settings = configured(config)
    checks = Checks.of(fail_under or [], compare_with, report or [], release, settings.evaluators.custom)
    failures: list[str] = []
    run_async(partial(_gold_run, settings, checks, failures, json=json))
    for failure in failures:
        sys.stderr.write(f"tracescore gold run: {failure}\n")
    if failures:
        raise typer.Exit(1)


async def _gold_run(config: Config, checks: Checks, failures: list[str], *, json: bool) -> None:
    from prometheus_client import CollectorRegistry
    from rich.console import Console
    from rich.progress import Progress

    from tracescore.cli.gold_run import run
    from tracescore.pipeline.scorer import Scorer

    scorer = Scorer(config, config.measures, CollectorRegistry())
    try:
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:

            def begin(total: int) -> Callable[[], None]:
                return partial(progress.advance, progress.add_task("gold run", total=total))

            made = await run(config, scorer.judge, scorer.gold_evaluators, checks, begin)
    finally:
        await scorer.close()
    for measure, found in made.run.estimates(made.min_scored).items():
        if json:
            print_json({"measure": measure} | dataclasses.asdict(found))
            continue
        interval = f"{found.lower:.3f} to {found.upper:.3f}"
        sys.stdout.write(f"{measure:20} {found.mean:.3f}  ({interval}; {found.scored} of {found.of} items)\n")
    for note in made.notes:
        sys.stderr.write(f"tracescore gold run: {note}\n")
    failures += made.failures


@gold.command("pin")
def gold_pin(
    *,
    config: ConfigPath = None,
    release: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Which release; without it the one that ran last.")
    ] = None,
) -> None:
    """Make the last three good runs the reference for later ones."""
    from tracescore.cli.gold_run import pin

    sys.stdout.write(pin(configured(config), release) + "\n")
