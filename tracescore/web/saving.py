"""A trace from its page as files: redacted OTLP, and a draft of what must be read out of it.

Unpacked into tests/captures they are a test: NAME.001.traces.json, which `tracescore inspect` reads, and
NAME.expected.json, in which a person puts right what was read wrongly.
"""

import base64
import re
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tracescore.config import InteractionsConfig
from tracescore.model import Clock, Interaction, RawLog, RawSpan, RawTrace
from tracescore.net.asgi import Response
from tracescore.pipeline.trace_reader import TraceReader

_MOST = 2**24
"""Bytes of all spans and log records that are kept."""
PATH = re.compile(r"/interactions/([0-9a-f]{32})/(trace|expected)\.json", re.ASCII)
_IDS = frozenset(("traceId", "spanId", "parentSpanId"))
_NOTES = "draft: this is what was read; put right what is wrong, and say why"
_FIELDS = ("question", "answer", "contexts")


class Saving:
    """The traces that were read last, kept in memory as they came, and as files with all their texts redacted.

    With an age (seconds), those that were read earlier are not there, and leave when a new one comes.
    """

    def __init__(
        self,
        settings: InteractionsConfig,
        redact: Callable[[str], str],
        age: float | None = None,
        clock: Clock = time.time,
    ) -> None:
        self._reader, self._redact, self._age, self._clock = TraceReader(settings), redact, age, clock
        self._kept: OrderedDict[str, tuple[RawTrace, float]] = OrderedDict()  # with when it was read, in that order
        self._bytes = 0

    def keep(self, raw: RawTrace) -> None:
        """Keeps a trace, in the place of its former self; the oldest go when there are too many bytes."""
        trace_id = raw.trace_id.hex()
        self.forget([trace_id])
        self._kept[trace_id] = raw, self._clock()
        self._bytes += _size(raw)
        while self._kept and (self._bytes > _MOST or not self.has(next(iter(self._kept)))):
            self.forget([next(iter(self._kept))])

    def forget(self, trace_ids: Iterable[str]) -> int:
        """Forgets these traces; how many of them were kept."""
        gone = [self._kept.pop(each) for each in trace_ids if each in self._kept]
        self._bytes -= sum(_size(raw) for raw, _ in gone)
        return len(gone)

    def has(self, trace_id: str) -> bool:
        """Whether a trace is still kept."""
        kept = self._kept.get(trace_id)
        return kept is not None and (self._age is None or self._clock() - kept[1] < self._age)

    def answer(self, path: str) -> Response | None:
        """The file at a path; None where there is none."""
        match = PATH.fullmatch(path)
        if match is None or not self.has(match[1]):
            return None
        raw, _ = self._kept[match[1]]
        name = f"trace-{match[1][:8]}"
        content = self._trace(raw)
        if match[2] == "expected":
            content, file = self._draft(name, content), f"{name}.expected.json"
        else:
            file = f"{name}.001.traces.json"
        saved = (("content-disposition", f'attachment; filename="{file}"'),)
        return Response(200, content, "application/json", saved)

    def _trace(self, raw: RawTrace) -> bytes:
        """A request of traces and, on a line of its own, one of logs where there are any."""
        kinds: tuple[tuple[str, str, str, type[Message], Iterable[RawSpan | RawLog]], ...] = (
            ("resourceSpans", "scopeSpans", "spans", Span, raw.spans),
            ("resourceLogs", "scopeLogs", "logRecords", LogRecord, raw.logs),
        )
        lines = []
        for resources, scopes, pieces, kind, held in kinds:
            blocks: dict[tuple[bytes, bytes], list[Any]] = defaultdict(list)
            for each in held:
                body = each.span if isinstance(each, RawSpan) else each.record
                blocks[each.resource, each.scope].append(self._plain(kind, body))
            found = []
            for (of, by), rows in blocks.items():
                inside = {"scope": self._plain(InstrumentationScope, by), pieces: rows}
                found.append({"resource": self._plain(Resource, of), scopes: [inside]})
            if found:
                lines.append(orjson.dumps({resources: found}))
        return b"\n".join([*lines, b""])

    def _plain(self, kind: type[Message], body: bytes) -> Any:
        message = kind()
        message.ParseFromString(body)
        return self._without(MessageToDict(message, use_integers_for_enums=True))

    def _without(self, value: Any, key: str = "") -> Any:
        """Plain data with ids as OTLP's JSON has them, and all other texts redacted."""
        if isinstance(value, dict):
            return {name: self._without(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self._without(each, key) for each in value]
        if not isinstance(value, str):
            return value
        if key in _IDS:
            return base64.b64decode(value).hex()
        return self._redacted(value) if key in ("stringValue", "name", "message") else value

    def _redacted(self, text: str) -> str:
        """A text redacted; inside JSON text by text, so that it stays JSON."""
        if text.lstrip()[:1] in ("{", "["):
            try:
                data = orjson.loads(text)
            except ValueError:
                return self._redact(text)
            clean = self._inside(data)
            return text if clean == data else orjson.dumps(clean).decode()
        return self._redact(text)

    def _inside(self, data: Any) -> Any:
        if isinstance(data, dict):
            return {self._redact(key): self._inside(each) for key, each in data.items()}
        if isinstance(data, list):
            return [self._inside(each) for each in data]
        if isinstance(data, str):
            return self._redacted(data)
        number = isinstance(data, int | float) and not isinstance(data, bool)
        return clean if number and (clean := self._redact(str(data))) != str(data) else data

    # ---------------------------------------------------------------- the draft

    def _draft(self, name: str, trace: bytes) -> bytes:
        """What is read out of the very file that is saved."""
        decoded, reading = self._reader.read_json(trace)
        names = {span.span_id: span.name for span in decoded.spans}
        found = [_row(number, each, names) for number, each in enumerate(reading.interactions, 1)]
        draft = {
            "name": name,
            "files": [f"{name}.001.traces.json"],
            "library": "",
            "instrumentation": ", ".join(sorted({each.instrumentation for each in reading.interactions})),
            "recorded": True,
            "special": reading.reason or "",
            "switches": "",
            "interactions": found,
            "other_traces": [] if found else [decoded.trace_id],
        }
        return orjson.dumps(draft, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _row(number: int, of: Interaction, names: dict[str, str]) -> dict[str, Any]:
    prompt = {"contexts_in_prompt": of.contexts} if of.context_source == "prompt" else {}
    found = {key: [f"{place.span} @ {place.key}"] for key, place in of.found.items() if place.key}
    return {
        "key": f"interaction-{number}",
        "trace_id": of.trace_id,
        "root_span_id": of.span_id,
        "root_span_name": names.get(of.span_id, ""),
        "question": of.question,
        "answer": of.answer,
        "contexts": of.contexts if of.contexts and not prompt else None,
        "status": "error" if of.state == "app_error" else "ok",
        "state": of.state,
        **prompt,
        "context_source": of.context_source,
        "found_at": {key: found[key] for key in _FIELDS if key in found},
        "notes": _NOTES,
    }


def _size(raw: RawTrace) -> int:
    shared = {piece for span in raw.spans for piece in (span.resource, span.scope)}
    shared |= {piece for log in raw.logs for piece in (log.resource, log.scope)}
    own = sum(len(span.span) for span in raw.spans) + sum(len(log.record) for log in raw.logs)
    return own + sum(map(len, shared))
