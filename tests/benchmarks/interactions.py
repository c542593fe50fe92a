"""CPU of reading interactions against plain, full protobuf decoding of the same spans in the same run.

    python tests/benchmarks/interactions.py

Traces of 50, 500 and 5,000 spans in several shapes. Plain decoding is what any reader must do at least: every span
parsed, with a dict of its attributes. The figure to look at is the ratio; it must not grow with the trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from tests.costs import cpu_seconds
from tests.otlp import attributes
from tests.shapes import SHAPES
from tests.spans import read
from tracescore.model import Span, Trace

SIZES = (50, 500, 5_000)


def encoded(span: Span) -> bytes:
    """A span as it comes over the wire."""
    return ProtoSpan(
        trace_id=bytes(16),
        span_id=span.span_id.encode(),
        parent_span_id=span.parent_span_id.encode(),
        name=span.name,
        start_time_unix_nano=span.start_unix_nano,
        end_time_unix_nano=span.end_unix_nano,
        attributes=attributes(span.attributes),
    ).SerializeToString()


def decoding(made: Trace) -> Callable[[], object]:
    """Every span of a trace parsed, with a dict of its attributes."""
    raw = [encoded(span) for span in made.spans]

    def decode() -> list[tuple[str, dict[str, str]]]:
        spans = map(ProtoSpan.FromString, raw)
        return [(span.name, {pair.key: pair.value.string_value for pair in span.attributes}) for span in spans]

    return decode


def main() -> None:
    """Prints a line for each shape and size."""
    print(f"{'shape':32} {'spans':>6} {'interactions':>12} {'ms':>8} {'ms/1,000 spans':>15} {'plain':>7} {'ratio':>6}")
    for shape, make in SHAPES.items():
        for size in SIZES:
            made = make(size)
            found, spans = len(read(made)), len(made.spans)
            reading = cpu_seconds(lambda made=made: lambda: read(made)) * 1e3
            plain = cpu_seconds(lambda made=made: decoding(made)) * 1e3
            per = 1e3 / spans
            print(
                f"{shape:32} {spans:6} {found:12} {reading:8.1f} {reading * per:15.1f} {plain * per:7.2f}"
                f" {reading / plain:6.1f}"
            )


if __name__ == "__main__":
    main()
