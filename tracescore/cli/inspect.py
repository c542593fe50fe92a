"""`tracescore inspect`: the interactions that can be read out of OTLP files, without a service."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracescore.cli.options import ConfigPath, configured, print_json
from tracescore.errors import DecodeError, TracescoreError, UsageError
from tracescore.model import Interaction, RawLog, RawSpan

if TYPE_CHECKING:
    from tracescore.config import InteractionsConfig

_FIELDS = [
    "trace_id",
    "span_id",
    "service",
    "release",
    "environment",
    "convention",
    "instrumentation",
    "state",
    "question",
    "answer",
    "contexts",
    "context_source",
    "history",
    "conversation_id",
    "slices",
]


def inspect(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="OTLP request bodies (.pb, .json).")],
    *,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Name the span and key of each field, and why a trace holds none."),
    ] = False,
    config: ConfigPath = None,
) -> None:
    """Print what tracescore reads from OTLP files: one JSON line per interaction."""
    refused: list[TracescoreError] = []
    empty: list[dict[str, Any]] = []
    found = False
    for row in _inspected(files, configured(config).interactions, refused.append, empty.append, explain=explain):
        found = True
        print_json(row)
    for row in empty if explain else ():
        print_json(row)
    if empty and not found and not explain:
        reasons = ", ".join(f"{count} {reason}" for reason, count in Counter(row["reason"] for row in empty).items())
        sys.stderr.write(f"tracescore: no interaction in {len(empty)} traces ({reasons}); --explain says what to do\n")
    for refusal in refused:
        sys.stderr.write(f"tracescore: {refusal}\n")
    if refused:
        raise typer.Exit(2)


def _inspected(
    files: Sequence[Path],
    settings: InteractionsConfig,
    refuse: Callable[[UsageError | DecodeError], None],
    pass_over: Callable[[dict[str, Any]], None],
    *,
    explain: bool = False,
) -> Iterator[dict[str, Any]]:
    """One plain mapping per interaction in OTLP request files (.pb, .json), traces and logs together.

    A file that is not what its name says goes to `refuse` and does not stop the rest; a trace that holds no interaction
    goes to `pass_over`, with the reason.
    """
    from tracescore.assembly import assemble
    from tracescore.interactions.report import REASON_ADVICE
    from tracescore.otlp.files import read_file
    from tracescore.pipeline.trace_reader import TraceReader

    spans: dict[bytes, list[RawSpan]] = defaultdict(list)
    logs: dict[bytes, list[RawLog]] = defaultdict(list)
    for file in files:
        try:
            file_spans, file_logs = read_file(file)
        except (UsageError, DecodeError) as error:
            refuse(error)
            continue
        for span in file_spans:
            spans[span.trace_id].append(span)
        for log in file_logs:
            logs[log.trace_id].append(log)
    found: list[tuple[Interaction, str]] = []
    reader = TraceReader(settings)
    for trace_id in dict.fromkeys([*spans, *logs]):
        _, reading = reader.read(assemble(spans[trace_id], logs[trace_id]))
        found += [(interaction, reading.misspelt) for interaction in reading.interactions]
        if reading.reason is not None:
            advice = reading.misspelt or REASON_ADVICE[reading.reason]
            pass_over({"trace_id": trace_id.hex(), "state": "none", "reason": reading.reason, "advice": advice})
    for interaction, misspelt in sorted(
        found, key=lambda row: (row[0].start_unix_nano, row[0].trace_id, row[0].span_id)
    ):
        yield _row(interaction) | (_explanation(interaction, misspelt) if explain else {})


def _row(interaction: Interaction) -> dict[str, Any]:
    row = {name: getattr(interaction, name) for name in _FIELDS}
    return row | {"unusable": sorted(interaction.unusable)}


def _explanation(interaction: Interaction, misspelt: str) -> dict[str, Any]:
    """Where each field was read and, where something is missing, what to set."""
    from tracescore.interactions import content_switch

    advice = misspelt
    if interaction.state == "content_not_captured":
        advice = f"turn content on with {content_switch(interaction.convention, interaction.instrumentation)}"
    return {"found": interaction.found} | ({"advice": advice} if advice else {})
