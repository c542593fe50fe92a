"""OTLP export requests in files: protobuf (.pb) or JSON (.json), as exporters and collectors write them."""

from pathlib import Path
from typing import Any

from tracescore.errors import DecodeError, UsageError
from tracescore.model import RawLog, RawSpan
from tracescore.otlp import json as otlp_json
from tracescore.otlp.split import split_logs, split_traces


def read_file(path: Path) -> tuple[list[RawSpan], list[RawLog]]:
    """All spans and log records of one OTLP export request in a file: protobuf (.pb) or JSON (.json).

    A JSON file may also hold one request per line. Whether it is traces or logs is seen from the content, or for
    protobuf from a name that ends in .logs.pb. Raises UsageError when the file cannot be read or has
    another ending, DecodeError when its content is not OTLP.
    """
    if path.suffix not in (".pb", ".json"):
        raise UsageError(f"{path}: a file named .pb (OTLP protobuf) or .json (OTLP JSON) expected")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    named_logs = path.stem.endswith(".logs")
    try:
        return read_json(content) if path.suffix == ".json" else _read_protobuf(content, named_logs)
    except DecodeError as error:
        raise DecodeError(f"{path}: {error}") from None


def _everything(_trace_id: bytes) -> bool:
    return True


def _read_protobuf(content: bytes, named_logs: bool) -> tuple[list[RawSpan], list[RawLog]]:
    if not named_logs:
        traces = split_traces(content, _everything)
        if traces.spans or not traces.received:
            return traces.spans, []
    split = split_logs(content, _everything)
    if split.received and not split.logs and (split.rejected or not named_logs):
        raise DecodeError(f"none of its {split.received} records is a span or log record with valid ids")
    return [], split.logs


def read_json(content: bytes) -> tuple[list[RawSpan], list[RawLog]]:
    """All spans and log records of OTLP JSON: one request, or one per line; DecodeError for anything else."""
    spans: list[RawSpan] = []
    logs: list[RawLog] = []
    for document in _documents(content):
        if not otlp_json.is_traces(document) and not otlp_json.is_logs(document):
            raise DecodeError("OTLP JSON expected: an object with resourceSpans or resourceLogs")
        if otlp_json.is_logs(document):
            logs += split_logs(otlp_json.logs_document_to_protobuf(document), _everything).logs
        else:
            spans += split_traces(otlp_json.traces_document_to_protobuf(document), _everything).spans
    return spans, logs


def _documents(content: bytes) -> list[Any]:
    """The file as one JSON document, or as one per line (what the collector's file exporter writes)."""
    try:
        return [otlp_json.parse(content)]
    except DecodeError:
        lines = [line for line in content.splitlines() if line.strip()]
        if len(lines) < 2 or b"}" not in lines[0]:
            raise
    return [otlp_json.parse(line) for line in lines]
