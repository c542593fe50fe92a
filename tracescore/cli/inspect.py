"""What `tracescore inspect` prints: the interactions that can be read out of OTLP files, without a service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tracescore.assembly import put_together
from tracescore.config import InteractionsConfig
from tracescore.errors import DecodeError, UsageError
from tracescore.interactions import read
from tracescore.model import Interaction, RawLog, RawSpan
from tracescore.otlp.decode import decode
from tracescore.otlp.files import read_file


def inspect(
    files: Sequence[Path],
    settings: InteractionsConfig,
    refuse: Callable[[UsageError | DecodeError], None],
    *,
    explain: bool = False,
) -> Iterator[dict[str, Any]]:
    """One plain mapping per interaction in OTLP request files (.pb, .json), traces and logs together.

    A file that is not what its name says goes to `refuse` and does not stop the rest.
    """
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
    found: list[Interaction] = []
    for trace_id in dict.fromkeys([*spans, *logs]):
        found += read(decode(put_together(spans[trace_id], logs[trace_id])), settings).interactions
    for interaction in sorted(found, key=lambda i: (i.start_unix_nano, i.trace_id, i.span_id)):
        yield _inspected(interaction, explain=explain)


_INSPECTED = [
    "trace_id",
    "span_id",
    "service",
    "release",
    "environment",
    "convention",
    "state",
    "question",
    "answer",
    "contexts",
    "context_source",
    "history",
    "conversation_id",
    "slices",
]


def _inspected(interaction: Interaction, *, explain: bool) -> dict[str, Any]:
    row = {name: getattr(interaction, name) for name in _INSPECTED}
    row["unusable"] = sorted(interaction.unusable)
    if explain:
        row["found"] = interaction.found
    return row
