"""Whatever the order, the batches and the repetitions: the same traces, and every span accounted for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.otlp import log, raw_log, raw_span, span
from tracescore.assembly import Assembly
from tracescore.assembly.markers import patterns
from tracescore.config import AssemblyConfig
from tracescore.model import RawLog, RawSpan

IDLE, ORPHAN_IDLE = 5, 300

numbers = st.integers(1, 6)
made_spans = st.builds(
    lambda number, parent, trace, end, name: raw_span(
        span(number, parent, trace, end_time_unix_nano=end, name="n" * name, attrs={"mark": 1} if trace > 1 else {})
    ),
    numbers,
    st.integers(0, 6),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(0, 2),
)
made_logs = st.builds(
    lambda trace, time: raw_log(log(trace, time_unix_nano=time)), st.integers(1, 3), st.integers(1, 4)
)
pieces = st.lists(st.one_of(made_spans, made_logs), min_size=1, max_size=14)


class Bench:
    def __init__(self, max_held: int = 2**20, markers: tuple[bytes, ...] = ()) -> None:
        self.now, self.registry = 0.0, CollectorRegistry()
        settings = AssemblyConfig.model_validate(
            {"idle": f"{IDLE}s", "orphan_idle": f"{ORPHAN_IDLE}s", "max_held": f"{max_held}B"}
        )
        self.assembly = Assembly(settings, markers, self.registry, lambda: self.now)

    def take(self, batch) -> None:
        self.assembly.take(
            [one for one in batch if isinstance(one, RawSpan)], [one for one in batch if isinstance(one, RawLog)]
        )

    def value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"tracescore_assembly_{name}", labels)


def content(traces):
    return {raw.trace_id: (raw.spans, raw.logs) for raw in traces}


@given(st.data(), pieces)
def test_any_split_order_and_repetition_gives_the_same_traces(data, sent) -> None:
    once = Bench()
    once.take(sent)

    again = data.draw(st.lists(st.sampled_from(sent), max_size=8))
    shuffled = data.draw(st.permutations(sent + again))
    other = Bench()
    for batch in batches(data, shuffled):
        other.take(batch)
    assert content(other.assembly.flush()) == content(once.assembly.flush())
    assert other.value("duplicate_spans_total") - once.value("duplicate_spans_total") == sum(
        isinstance(one, RawSpan) for one in again
    )


@given(st.data(), pieces)
def test_what_closes_in_between_is_read_again_whole(data, sent) -> None:
    once, other, last = Bench(), Bench(), {}
    once.take(sent)
    for batch in batches(data, data.draw(st.permutations(sent))):
        other.take(batch)
        other.now += data.draw(st.sampled_from([0, 1, IDLE, 20]))
        last |= content(other.assembly.due())
    last |= content(other.assembly.flush())
    assert last == content(once.assembly.flush())

    other.take(data.draw(st.permutations(sent)))
    assert other.assembly.flush() == [], "all of it has been read"


@given(st.data(), pieces, st.sampled_from([4_000, 10_000, 2**20]), st.sampled_from([(), (b"mark",)]))
def test_every_span_is_handed_out_dropped_repeated_or_waiting(data, sent, max_held, markers) -> None:
    bench, out = Bench(max_held, markers), set()
    again = data.draw(st.lists(st.sampled_from(sent), max_size=8))
    for batch in batches(data, data.draw(st.permutations(sent + again))):
        bench.take(batch)
        bench.now += data.draw(st.sampled_from([0, IDLE, ORPHAN_IDLE, 4000]))
        out |= {(one.trace_id, one.span_id) for raw in bench.assembly.due() for one in raw.spans}
        assert_accounts_balance(bench)
    out |= {(one.trace_id, one.span_id) for raw in bench.assembly.flush() for one in raw.spans}
    assert_accounts_balance(bench)
    assert bench.value("waiting_spans") == bench.value("open_bytes") == 0
    unmarked = 1 if markers else 0
    assert out == {
        (one.trace_id, one.span_id) for one in sent if isinstance(one, RawSpan) and one.trace_id[-1] != unmarked
    }


def assert_accounts_balance(bench: Bench) -> None:
    assert bench.value("spans_total") == (
        bench.value("read_spans_total")
        + bench.value("dropped_spans_total", reason="no_marker")
        + bench.value("duplicate_spans_total")
        + bench.value("waiting_spans")
    )
    held = bench.assembly
    assert bench.value("open_bytes") == sum(trace.size for trace in held._open.values())
    assert bench.value("kept_bytes") == sum(trace.size for trace in held._closed.values())
    for trace in held._open.values():
        assert trace.missing == len({one.parent_span_id for one in trace.spans.values()} - {b"", *trace.spans})
        assert trace.roots == sum(not one.parent_span_id for one in trace.spans.values())


def batches(data, sent):
    """`sent` cut at random places."""
    rest = list(sent)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        yield rest[:size]
        del rest[:size]


FEW_BYTES = st.lists(st.sampled_from(b"\n\x12bxyz"), max_size=30).map(bytes)
MARKERS = st.lists(FEW_BYTES.filter(bool).map(lambda word: word[:4]), min_size=1, max_size=6).map(tuple)


@given(MARKERS, FEW_BYTES)
def test_a_marker_is_found_just_where_a_string_begins_with_it(markers: tuple[bytes, ...], text: bytes) -> None:
    found = any(pattern.search(text) for pattern in patterns(markers))
    places = [at for at, byte in enumerate(text) if byte in b"\n\x12b"]
    assert found == any(text.startswith(markers, at + 2) for at in places)
