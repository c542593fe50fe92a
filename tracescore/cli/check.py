"""`tracescore check`: what is wrong with a configuration, told before anything runs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracescore import logs
from tracescore.cli.custom_lines import custom_lines
from tracescore.cli.options import configured
from tracescore.cli.running import error_of_ours, run_async
from tracescore.errors import TargetFailed, TracescoreError, UsageError

if TYPE_CHECKING:
    from tracescore.config import Config, EmbedderConfig, JudgeConfig
    from tracescore.embedder import Embedder


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file.")],
    *,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also ask the judge, the embedder and the app of the gold set.")
    ] = False,
    scores_per_day: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Also print how soon a drop is detected at N scores a day, and what max_series holds.",
        ),
    ] = None,
    spool: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Say how soon tracescore would report a drop, from what this spool has measured."
        ),
    ] = None,
) -> None:
    """Validate a configuration and the files it names. With --probe, also ask the judge and the app."""
    logs.to_stderr(logging.ERROR)
    config = configured(file, secrets=True)
    gold_set, own = _read_files(config), custom_lines(config)
    if probe:
        failures: list[str] = []
        run_async(partial(_probe, config, failures))
        if failures:
            raise UsageError("\ntracescore: ".join(failures))
    typer.echo(f"{file}: fine; judge {config.judge.known_as}, measures {', '.join(config.measures)}{gold_set}")
    for each in own:
        typer.echo(each)
    for measure, given in config.drift.targets.items():
        if isinstance(given, dict):
            by_service = ", ".join(f"{service} {target:g}" for service, target in given.items())
            typer.echo(f"  targets of {measure} by service: {by_service}")
    if config.judge.kind == "openai" and config.judge.budget is not None:
        from tracescore.drift.power import affordable

        typer.echo(affordable(config))
    if scores_per_day is not None:
        from tracescore.drift.power import report

        for line in report(config, scores_per_day):
            typer.echo(line)
        typer.echo(_capacity(config))
    if spool is not None:
        for line in _measured(config, spool):
            typer.echo(line)


def _measured(config: Config, spool: Path) -> Iterator[str]:
    """How soon tracescore reports a drop, from traffic and spread in a spool; UsageError when it has too little."""
    from tracescore.drift.family import Family
    from tracescore.drift.power import measured
    from tracescore.drift.references import with_references
    from tracescore.drift.watch import DriftWatch
    from tracescore.spool.peek import totals

    saved = totals(spool).get(DriftWatch.name)
    if saved is None or not config.drift.detector:
        raise UsageError(f"--spool: {spool} has no detectors yet: they are kept while drift.detector is on")
    try:
        state = DriftWatch.codec.load(saved)
    except ValueError as error:
        raise UsageError(f"--spool: {spool}: another version wrote its detectors: {error}") from None
    family = Family(with_references(config.drift, config.evaluators.custom), config.sampling, config.measures)
    family.resume(state.family)
    return measured(config, family)


def _capacity(config: Config) -> str:
    """The line that says what exporters.prometheus.max_series holds."""
    import time

    from prometheus_client import CollectorRegistry

    from tracescore.exporters.prometheus.exporter import PrometheusExporter

    settings = config.exporters.prometheus
    own = config.evaluators.custom
    exporter = PrometheusExporter(CollectorRegistry(), settings, config.drift, config.sampling, time.time, own)
    release, value, releases = exporter.capacity(config.measures)
    sliced = releases * release // (release + 20 * value)
    return (
        f"exporters.prometheus.max_series {settings.max_series:,} holds {releases:,} releases of services, "
        f"or {sliced:,} with 20 slice values each: a release has {release} series, a slice value {value}"
    )


def _read_files(config: Config) -> str:
    """Reads all files it names; says which gold set it is. ConfigError, UsageError: what is wrong."""
    if config.drift.references is not None:
        from tracescore.drift.references import with_references

        with_references(config.drift, config.evaluators.custom)
    if config.drift.anchors is not None:
        from tracescore.drift.anchors import read_anchors

        read_anchors(config.drift.anchors)
    if config.judge.kind == "openai" and not isinstance(config.judge.prompts, str):
        from tracescore.judge.prompt import load_prompts

        load_prompts(config.judge.prompts)
    if config.gold is None:
        return ""
    from tracescore.gold.items import load

    gold_set = load(Path(config.gold.set), config.gold.name)
    return f", gold set {gold_set.name}{f' ({gold_set.keys})' if gold_set.keys else ''}"


async def _probe(config: Config, failures: list[str]) -> None:
    """Asks the judge and, where one is needed, the embedder; says where it asked and adds what failed to `failures`."""
    from prometheus_client import CollectorRegistry

    from tracescore.evaluators.custom import RubricMeasure
    from tracescore.judge.known_cases import try_examples
    from tracescore.pipeline.scorer import Scorer

    scorer = Scorer(config, config.measures, CollectorRegistry())
    asked: dict[str, Callable[[], Awaitable[str | None]]] = {}
    asked[f"judge {scorer.judge.name} {_where(config.judge)}"] = scorer.judge.probe
    if scorer.embedder is not None:
        asked[f"embedder {scorer.embedder.name} {_where(config.embedder)}"] = partial(_embed, scorer.embedder)
    for each in scorer.evaluators:
        if isinstance(each, RubricMeasure):
            asked[f"evaluators.custom.{each.measure}"] = partial(try_examples, each.rubric, scorer.judge)
    if config.gold is not None:
        from tracescore.cli.gold_run import probe

        asked[f"gold set {config.gold.set}"] = partial(probe, config)
    try:
        for what, ask in asked.items():
            try:
                said = await ask()
            except (TracescoreError, BaseExceptionGroup) as error:
                ours = error_of_ours(error)
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
    """Where a judge or an embedder is asked."""
    if settings.kind != "openai":
        return "in this process"
    return f"at {settings.where}"
