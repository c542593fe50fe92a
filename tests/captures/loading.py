"""The recorded OTLP requests beside this file, decoded, with what is known to be in them."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from tracescore.model import RawLog, RawSpan, RawTrace, Trace
from tracescore.otlp.decode import decode
from tracescore.otlp.files import read_file

HERE = Path(__file__).parent
NAMES = tuple(sorted(path.name.removesuffix(".expected.json") for path in HERE.glob("*.expected.json")))
RECORDED = tuple(sorted(path.name.removesuffix(".expected.json") for path in HERE.glob("recorded/*.expected.json")))
"""Those that `tests.captures.record` records."""


@cache
def expected(name: str) -> dict[str, Any]:
    return json.loads((_folder(name) / f"{name}.expected.json").read_text())


def _folder(name: str) -> Path:
    return HERE / "recorded" if name in RECORDED else HERE


@cache
def raw_traces(name: str) -> tuple[RawTrace, ...]:
    """The traces of a capture in order of arrival."""
    spans: dict[bytes, dict[bytes, RawSpan]] = defaultdict(dict)
    logs: dict[bytes, list[RawLog]] = defaultdict(list)
    for file in sorted(_folder(name).glob(f"{name}.[0-9]*")):
        file_spans, file_logs = read_file(file)
        for span in file_spans:
            spans[span.trace_id].setdefault(span.span_id, span)
        for log in file_logs:
            logs[log.trace_id].append(log)
    order = dict.fromkeys([*spans, *logs])
    return tuple(RawTrace(key, tuple(spans[key].values()), tuple(logs[key]), "complete") for key in order)


@cache
def traces(name: str) -> tuple[Trace, ...]:
    return tuple(decode(raw) for raw in raw_traces(name))
