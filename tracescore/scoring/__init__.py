"""`score` and `ascore`: cases in, scores out, without a service. What is public stands in tracescore/__init__.pyi."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from anyio.from_thread import start_blocking_portal

from tracescore.config import Config
from tracescore.config.file import load, parse
from tracescore.datasets.rows import rows_of
from tracescore.errors import UsageError
from tracescore.model import MEASURES, Measure
from tracescore.scoring.results import ScoredCases
from tracescore.scoring.run import ScoreRun

RowSource = Any
"""Cases, dicts, a frame of pandas or polars, a table of pyarrow, a data set of Hugging Face or RAGAS, or a path."""
Settings = Config | Mapping[str, Any] | str | os.PathLike[str]
"""A configuration: the path of a file, or its sections as a dict."""


def score(
    rows: RowSource, *, measures: Iterable[str] | None = None, config: Settings | None = None, **sections: Any
) -> ScoredCases:
    """Scores the rows and returns when that is done; in a notebook too: it has an event loop in a thread of its own.

    `rows` are `Case`s, dicts by the keys of tracescore or of other tools (docs/python.md), a frame of pandas or
    polars, a data set of Hugging Face, or the path of a file. `measures` are all unless named here or in `config`,
    which is a configuration file or its sections as a dict; `sections` are such sections as keywords
    (`judge={"kind": "openai", ...}`). Without them the judge is the embedded one.

    UsageError for rows, measures or a configuration that cannot be used; JudgeError when the judge cannot be asked.
    What fails for a single row is no error: its value is None, with the reason.
    """
    with start_blocking_portal() as portal:
        return portal.call(partial(ascore, rows, measures=measures, config=config, **sections))


async def ascore(
    rows: RowSource, *, measures: Iterable[str] | None = None, config: Settings | None = None, **sections: Any
) -> ScoredCases:
    """`score` in the event loop that is running."""
    if config is not None and sections:
        raise UsageError(f"config and {', '.join(sections)}: either a configuration or sections expected; got both")
    settings = config_of(config or sections or None)
    chosen, cases = _measures(measures, [*MEASURES, *settings.evaluators.custom]), rows_of(rows)
    async with ScoreRun(settings, chosen) as run:
        await run.probe()
        return ScoredCases(tuple([each async for each in run.over(cases)]))


def _measures(names: Iterable[str] | None, known: Sequence[Measure]) -> Sequence[Measure] | None:
    if names is None:
        return None
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in known:
            raise UsageError(f"measures: {name}: no such measure; known: {', '.join(known)}")
    if not listed:
        raise UsageError(f"measures: at least one expected; known: {', '.join(known)}")
    return [measure for measure in known if measure in listed]


def config_of(given: Settings | None) -> Config:
    """The configuration of a file or of a dict, which is read by the rules of the file. ConfigError."""
    if given is None or isinstance(given, Config):
        return given or Config()
    if isinstance(given, Mapping):
        return parse(yaml.safe_dump(dict(given)), "config")
    return load(Path(given))
