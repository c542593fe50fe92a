"""What a recording must be read as: the recipe's turns, laid onto the spans that were exported."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict

from . import scene
from .setups import Setup, Turn
from .sink import Body
from .tidy import REQUESTS


@dataclass
class Seen:
    """A span as exported, with the texts of its attributes, of its events and of log records that belong to it."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    scope: str
    texts: list[tuple[str, str]] = field(default_factory=list)


class NotInTheExport(Exception):
    """A turn's text, or its span, is not in what was exported."""


def expectation(setup: Setup, bodies: Sequence[Body], files: Sequence[str], versions: str) -> dict[str, Any]:
    """The content of NAME.expected.json. Raises NotInTheExport where the export does not hold what the turns say."""
    spans = sorted(_spans(bodies), key=lambda span: span.start)
    _attach_logs(bodies, spans)
    interactions = _interactions(setup.turns, spans)
    traces = {row["trace_id"] for row in interactions}
    return {
        "name": setup.name,
        "files": list(files),
        "library": versions,
        "packages": list(setup.packages),
        "instrumentation": ", ".join(sorted({span.scope for span in spans if span.scope})),
        "recorded": True,
        "special": setup.special,
        "switches": setup.switches,
        "interactions": interactions,
        "other_traces": sorted({span.trace_id for span in spans} - traces),
    }


def _interactions(turns: Sequence[Turn], spans: list[Seen]) -> list[dict[str, Any]]:
    taken: set[str] = set()
    rows = []
    for turn in turns:
        root = _root(turn, spans, taken)
        taken |= {root.span_id, root.trace_id}
        rows.append(_row(turn, root, [span for span in spans if span.trace_id == root.trace_id]))
    return rows


def _root(turn: Turn, spans: list[Seen], taken: set[str]) -> Seen:
    named = [span for span in spans if span.name.startswith(turn.root) and span.span_id not in taken]
    fresh = [span for span in named if span.trace_id not in taken]
    if fresh or (named and turn.root):
        return (fresh or named)[0]
    raise NotInTheExport(f"{turn.key}: no span {turn.root!r} is left of {[span.name for span in spans]}")


def _row(turn: Turn, root: Seen, spans: list[Seen]) -> dict[str, Any]:
    ids = {span.name: span.span_id for span in reversed(spans)}
    wanted = {"question": turn.question, "answer": turn.answer, "contexts": turn.contexts}
    texts = {
        key: [value] if isinstance(value, str) else list(value or turn.in_prompt)
        for key, value in wanted.items()
        if value is not None or key == "contexts"
    }
    if turn.in_pieces:
        del texts["answer"]
    found = {key: _places(key, each, spans) for key, each in texts.items() if each}
    if turn.state == "content_not_captured":
        _refuse_content(turn, spans)
    optional = {
        "passages": list(turn.passages),
        "contexts_in_prompt": list(turn.in_prompt),
        "or_question": list(turn.or_question),
        "or_answer": list(turn.or_answer),
        "or_contexts": [each and list(each) for each in turn.or_contexts],
        "or_state": list(turn.or_state),
        "or_root_span_id": [ids[name] for name in turn.or_root],
    }
    return {
        "key": turn.key,
        "trace_id": root.trace_id,
        "root_span_id": root.span_id,
        "root_span_name": root.name,
        "question": turn.question,
        "answer": turn.answer,
        "contexts": None if turn.contexts is None else list(turn.contexts),
        "status": "error" if turn.state == "app_error" else "ok",
        "state": turn.state,
        **{key: value for key, value in optional.items() if value},
        "found_at": found,
        "notes": turn.why,
    }


def _refuse_content(turn: Turn, spans: list[Seen]) -> None:
    """A text that the turn calls not recorded must not be."""
    for key, text in (("question", scene.QUESTION), ("answer", scene.ANSWERS[scene.QUESTION])):
        if getattr(turn, key) is None and any(_holds(value, text) for span in spans for _, value in span.texts):
            raise NotInTheExport(f"{turn.key}: the {key} is recorded, though the set-up says that it is not")


def _places(key: str, texts: list[str], spans: list[Seen]) -> list[str]:
    """Where the first of the texts stands; each of them must stand somewhere."""
    for text in texts:
        if not any(_holds(value, text) for span in spans for _, value in span.texts):
            raise NotInTheExport(f"{key} {text!r} stands nowhere in the export")
    places = {f"{s.name} @ {name}": None for s in spans for name, value in s.texts if _holds(value, texts[0])}
    return list(places)[:12]


def _holds(value: str, text: str) -> bool:
    """Whether a text stands in a value, as it is or inside JSON or a repr, however often escaped."""
    plain = re.sub(r"\\+n", " ", value).replace("\\", "")
    return " ".join(text.split()).replace('"', "") in " ".join(plain.split()).replace('"', "")


def _spans(bodies: Sequence[Body]) -> Iterator[Seen]:
    for resource in _blocks(bodies, "traces", "resourceSpans"):
        for block in resource.get("scopeSpans", []):
            scope = block.get("scope", {})
            label = f"{scope.get('name', '')} {scope.get('version', '')}".strip()
            for span in block["spans"]:
                ids = [span.get(key, "") for key in ("traceId", "spanId", "parentSpanId")]
                seen = Seen(*ids, span.get("name", ""), int(span["startTimeUnixNano"]), label)
                seen.texts = list(_texts(span.get("attributes", [])))
                for event in span.get("events", []):
                    inside = _texts(event.get("attributes", []))
                    seen.texts += [(f"event {event.get('name')}.{name}", text) for name, text in inside]
                yield seen


def _attach_logs(bodies: Sequence[Body], spans: list[Seen]) -> None:
    by_id: dict[str, list[Seen]] = defaultdict(list)
    for span in spans:
        by_id[span.span_id].append(span)
    for resource in _blocks(bodies, "logs", "resourceLogs"):
        for record in (r for block in resource.get("scopeLogs", []) for r in block["logRecords"]):
            name = record.get("eventName") or dict(_texts(record.get("attributes", []))).get("event.name", "log")
            texts = [
                *_texts(record.get("attributes", [])),
                ("body", json.dumps(record.get("body"), ensure_ascii=False)),
            ]
            for span in by_id[record.get("spanId", "")]:
                span.texts += [(f"log {name}.{key}", text) for key, text in texts]


def _blocks(bodies: Sequence[Body], kind: str, key: str) -> Iterator[dict[str, Any]]:
    for body in bodies:
        if body.kind != kind:
            continue
        if body.form == "json":
            yield from json.loads(body.data)[key]
            continue
        for resource in MessageToDict(REQUESTS[kind].FromString(body.data)).get(key, []):
            yield _with_hex_ids(resource)


def _with_hex_ids(thing: Any) -> Any:
    """Ids as OTLP JSON has them: protobuf's own JSON writes them in base64."""
    import base64

    if isinstance(thing, list):
        return [_with_hex_ids(each) for each in thing]
    if not isinstance(thing, dict):
        return thing
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        k: base64.b64decode(v).hex() if k in ids and isinstance(v, str) else _with_hex_ids(v) for k, v in thing.items()
    }


def _texts(attributes: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for attribute in attributes:
        value = attribute.get("value", {})
        text = value.get("stringValue")
        yield re.sub(r"\d+", "N", attribute["key"]), text if text is not None else json.dumps(value, ensure_ascii=False)
