"""When traces close, what repeats and late spans do, and what bounds the memory."""

from __future__ import annotations

import tracemalloc
from array import array

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from prometheus_client import CollectorRegistry

from tests.otlp import attributes, log, logs, raw_log, raw_span, span, traces, value
from tracescore.assembly import Assembly, memory
from tracescore.config import AssemblyConfig
from tracescore.otlp.split import split_logs, split_traces

IDLE, ORPHAN_IDLE, MAX_WAIT = 5, 30, 300
MARK = b"gen_ai."


class Bench:
    """An assembly, its clock and its metrics; spans are given as (number, parent) or whole."""

    def __init__(self, max_held: str = "1MiB", markers: tuple[bytes, ...] = ()) -> None:
        self.now = 1000.0
        self.registry = CollectorRegistry()
        settings = AssemblyConfig.model_validate(
            {"idle": f"{IDLE}s", "orphan_idle": f"{ORPHAN_IDLE}s", "max_wait": f"{MAX_WAIT}s", "max_held": max_held}
        )
        self.assembly = Assembly(settings, markers, self.registry, lambda: self.now)

    def take(self, *spans, logs=()) -> None:
        made = [span(*one) if isinstance(one, tuple) else one for one in spans]
        self.assembly.take([raw_span(one) for one in made], [raw_log(one) for one in logs])

    def after(self, seconds: float):
        """(trace number, span numbers, closed_by) of what is due that much later."""
        self.now += seconds
        return [shown(raw) for raw in self.assembly.due()]

    def value(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(f"tracescore_assembly_{name}", labels)
        assert found is not None, name
        return found


def shown(raw):
    return int.from_bytes(raw.trace_id, "big"), [int.from_bytes(s.span_id, "big") for s in raw.spans], raw.closed_by


@pytest.fixture
def bench() -> Bench:
    return Bench()


# ---------------------------------------------------------------- closing

CLOSING = {
    "root and children": ([(1, 0), (2, 1), (3, 2)], IDLE, "complete"),
    "children before their root": ([(3, 2), (2, 1), (1, 0)], IDLE, "complete"),
    "two roots": ([(1, 0), (2, 0)], IDLE, "complete"),
    "no root": ([(2, 1), (3, 2)], ORPHAN_IDLE, "quiet"),
    "a root, but a parent is missing": ([(1, 0), (3, 2)], ORPHAN_IDLE, "quiet"),
    "its own parent": ([(1, 1)], ORPHAN_IDLE, "quiet"),
}


@pytest.mark.parametrize(("spans", "wait", "closed_by"), CLOSING.values(), ids=CLOSING)
def test_a_trace_closes_sooner_when_nothing_is_missing(bench, spans, wait, closed_by) -> None:
    bench.take(*spans)
    assert bench.after(wait - 0.1) == []
    assert bench.after(0.1) == [(1, sorted(number for number, _ in spans), closed_by)]
    assert bench.after(10_000) == []
    assert bench.value("closed_traces_total", closed_by=closed_by) == 1


def test_every_new_span_starts_the_wait_again(bench) -> None:
    bench.take((1, 0))
    for number in range(2, 6):
        assert bench.after(IDLE - 1) == []
        bench.take((number, 1))
    assert bench.after(IDLE) == [(1, [1, 2, 3, 4, 5], "complete")]


def test_the_missing_parent_shortens_the_wait_when_it_comes(bench) -> None:
    bench.take((1, 0), (3, 2))
    bench.after(1)
    bench.take((2, 1))
    assert bench.after(IDLE) == [(1, [1, 2, 3], "complete")]


def test_a_better_version_of_a_span_may_complete_the_trace(bench) -> None:
    bench.take((1, 0), span(2, parent=9, end_time_unix_nano=1))
    bench.take(span(2, parent=1, end_time_unix_nano=2))
    assert bench.after(IDLE) == [(1, [1, 2], "complete")]


def test_a_trace_that_never_falls_silent_closes_after_max_wait(bench) -> None:
    closed = []
    for number in range(1, MAX_WAIT):
        bench.take((number, 0))
        closed += bench.after(2)
    assert closed == [(1, list(range(1, MAX_WAIT // 2 + 1)), "max_wait")]


def test_log_records_alone_close_as_quiet(bench) -> None:
    bench.take(logs=[log(7)])
    assert bench.after(ORPHAN_IDLE) == [(7, [], "quiet")]


def test_log_records_go_with_the_spans_of_their_trace_before_or_after_them(bench) -> None:
    bench.take(logs=[log(1, body={"string_value": "first"})])
    bench.take((1, 0))
    bench.take(logs=[log(1, body={"string_value": "last"})])
    bench.now += IDLE
    (raw,) = bench.assembly.due()
    assert len(raw.spans) == 1
    assert len(raw.logs) == 2


def test_shutdown_hands_out_everything(bench) -> None:
    bench.take((1, 0, 1), (1, 5, 2))
    assert [shown(raw) for raw in bench.assembly.flush()] == [(1, [1], "shutdown"), (2, [1], "shutdown")]
    assert bench.assembly.flush() == []
    assert bench.value("open_traces") == bench.value("open_bytes") == 0


# ---------------------------------------------------------------- repeats


def test_a_repeated_span_changes_nothing_and_does_not_prolong_the_wait(bench) -> None:
    bench.take((1, 0), (1, 0))
    bench.after(IDLE - 1)
    bench.take((1, 0))
    assert bench.after(1) == [(1, [1], "complete")]
    assert bench.value("duplicate_spans_total") == 2


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_spans_with_one_id_the_later_end_wins_in_any_order(bench, order) -> None:
    early, late = span(1, name="a long name", end_time_unix_nano=5), span(1, name="b", end_time_unix_nano=6)
    bench.take(*[early, late][::order])
    (raw,) = bench.assembly.flush()
    assert raw.spans == (raw_span(late),)


@pytest.mark.parametrize("order", [1, -1])
def test_with_the_same_end_the_larger_one_wins(bench, order) -> None:
    small, large = span(1, name="short"), span(1, name="much longer")
    bench.take(*[small, large][::order])
    (raw,) = bench.assembly.flush()
    assert raw.spans == (raw_span(large),)


def test_log_records_are_the_same_when_all_their_bytes_are(bench) -> None:
    bench.take(logs=[log(1, time_unix_nano=1), log(1, time_unix_nano=2), log(1, time_unix_nano=1)])
    (raw,) = bench.assembly.flush()
    assert len(raw.logs) == 2
    assert bench.value("duplicate_log_records_total") == 1


@pytest.mark.parametrize("later", [1, ORPHAN_IDLE + 1, 3500], ids=["spans kept", "ids remembered", "almost an hour"])
def test_repeats_after_closing_change_nothing(bench, later) -> None:
    everything = {"logs": [log(1, time_unix_nano=1)]}
    bench.take((1, 0), (2, 1), **everything)
    assert len(bench.after(IDLE)) == 1
    assert bench.after(later) == []
    bench.take((2, 1), (1, 0), **everything)
    assert bench.after(MAX_WAIT) == []
    assert bench.value("reopened_traces_total") == 0
    assert bench.value("duplicate_spans_total") == 2
    assert bench.value("duplicate_log_records_total") == 1


# ---------------------------------------------------------------- late spans


def test_a_late_span_opens_the_trace_again_with_all_its_spans(bench) -> None:
    bench.take((1, 0), logs=[log(1)])
    bench.after(IDLE)
    bench.after(ORPHAN_IDLE - 1)
    bench.take((2, 1))
    bench.now += IDLE
    (raw,) = bench.assembly.due()
    assert shown(raw) == (1, [1, 2], "complete")
    assert len(raw.logs) == 1
    assert bench.value("reopened_traces_total") == 1
    assert bench.value("read_spans_total") == 2, "each span counts once, however often it is handed out"


def test_max_wait_counts_from_the_late_span(bench) -> None:
    bench.take((1, 0))
    for _ in range(12):  # a session whose turns come every half minute
        bench.take((int(bench.now), 1))
        assert len(bench.after(25)) == 1


def test_when_only_ids_are_left_a_late_span_comes_alone(bench) -> None:
    bench.take((1, 0), (2, 1))
    bench.after(IDLE)
    bench.after(ORPHAN_IDLE)
    bench.take((1, 0), (3, 1), (2, 1))
    assert bench.after(ORPHAN_IDLE) == [(1, [3], "quiet")]
    bench.after(ORPHAN_IDLE)
    bench.take((1, 0), (2, 1), (3, 1))
    assert bench.after(MAX_WAIT) == [], "what was remembered before is still"


def test_after_an_hour_a_trace_is_forgotten(bench) -> None:
    bench.take((1, 0))
    bench.after(IDLE)
    bench.after(ORPHAN_IDLE)
    assert bench.value("remembered_traces") == 1
    bench.after(memory.REMEMBERED_SECONDS)
    assert bench.value("remembered_traces") == 0


def test_only_so_many_traces_are_remembered(bench, monkeypatch) -> None:
    monkeypatch.setattr(memory, "REMEMBERED_TRACES", 2)
    for number in (1, 2, 3):
        bench.take((1, 0, number))
        bench.after(ORPHAN_IDLE)
    bench.after(ORPHAN_IDLE)
    assert bench.value("remembered_traces") == 2
    bench.take(*((1, 0, number) for number in (1, 2, 3)))
    assert bench.after(IDLE) == [(1, [1], "complete")], "the oldest went first"
    assert bench.value("evictions_total", what="ids") >= 1


# ---------------------------------------------------------------- markers


def test_a_trace_without_any_marker_is_dropped_and_counted() -> None:
    bench = Bench(markers=(b"never", MARK))
    bench.take((1, 0, 1), (2, 1, 1), span(1, 0, trace=2, attrs={"gen_ai.x": 1}))
    assert bench.after(IDLE) == [(2, [1], "complete")]
    assert bench.value("dropped_traces_total", reason="no_marker") == 1
    assert bench.value("dropped_spans_total", reason="no_marker") == 2
    assert bench.value("closed_traces_total", closed_by="complete") == 2


EVENT = ProtoSpan.Event(name="gen_ai.choice")
PLACES = {
    "an attribute key": (span(1, attrs={"a": 1, "gen_ai.system": "x"}), None, True),
    "a key of an event": (
        span(1, events=[ProtoSpan.Event(attributes=attributes({"a" * 300: "b", "gen_ai.prompt": "x"}))]),
        None,
        True,
    ),
    "the name of an event": (span(1, events=[EVENT]), None, True),
    "a key of a log record": (span(1), log(1, attrs={"gen_ai.system": "x"}), True),
    "a key inside the body of a log record": (span(1), log(1, body=value({"gen_ai.x": 1})), True),
    "the event name of a log record": (span(1), log(1, event_name="gen_ai.choice"), True),
    "the middle of a text": (span(1, name="GET /gen_ai.html", attrs={"url.path": "/gen_ai.html"}), None, False),
    "the end of a key": (span(1, attrs={"my.gen_ai.": 1}), None, False),
}


@pytest.mark.parametrize(("one", "record", "found"), PLACES.values(), ids=PLACES)
def test_a_marker_counts_where_a_key_or_the_name_of_an_event_begins(one, record, found) -> None:
    bench = Bench(markers=(b"never", MARK))
    bench.take(one, logs=[record] if record else [])
    assert [number for number, *_ in bench.after(IDLE)] == ([1] if found else [])


def test_a_marker_counts_where_the_name_of_a_scope_begins() -> None:
    bench = Bench(markers=(b"scope",))
    bench.take((1, 0))
    assert bench.after(IDLE) == [(1, [1], "complete")]


def test_a_dropped_trace_is_read_whole_when_a_late_span_has_the_marker() -> None:
    bench = Bench(markers=(MARK,))
    bench.take((1, 0))
    assert bench.after(IDLE) == []
    bench.take(span(2, 1, attrs={"gen_ai.x": 1}))
    assert bench.after(IDLE) == [(1, [1, 2], "complete")]


# ---------------------------------------------------------------- memory


def filler(number: int, trace: int, size: int = 5000):
    return span(number, trace=trace, name="x" * size)


def test_open_traces_at_the_budget_leave_no_room_and_lose_nothing() -> None:
    bench, taken = Bench(max_held="30KiB"), 0
    while bench.assembly.room():
        taken += 1
        bench.take(filler(1, taken))
    assert taken == 5
    bench.take(filler(1, 6))  # was on its way when the last room was taken
    assert not bench.assembly.room()
    assert len(bench.after(IDLE)) == 6
    assert bench.assembly.room()


def test_closed_traces_give_way_before_anything_is_refused_the_oldest_first() -> None:
    bench = Bench(max_held="30KiB")
    for trace in (1, 2, 3):
        bench.take(filler(1, trace))
        bench.after(IDLE)
    for trace in (4, 5):
        assert bench.assembly.room()
        bench.take(filler(1, trace))
    assert bench.value("evictions_total", what="spans") == bench.value("remembered_traces") == 1
    bench.take(span(2, 1, trace=1), span(2, 1, trace=3))
    closed = {trace: numbers for trace, numbers, _ in bench.after(ORPHAN_IDLE)}
    assert closed[1] == [2], "let go"
    assert closed[3] == [1, 2], "still there"


def test_one_endless_trace_is_closed_before_it_fills_the_budget() -> None:
    bench = Bench(max_held="40KiB")
    for number in (1, 2, 3):
        bench.take(filler(number, trace=1))
    assert bench.assembly.room()
    assert bench.after(0) == [(1, [1, 2], "evicted")]
    bench.take(filler(1, trace=1), filler(2, trace=1))
    assert bench.after(IDLE) == [(1, [3], "complete")], "what was read is not kept, but known"


def test_held_bytes_are_at_least_what_is_really_held() -> None:
    def requests():
        for trace in range(1, 301):
            yield traces([span(n, trace=trace, attrs={"key": "x" * 40}) for n in range(1, 7)]).SerializeToString()

    bodies, bench = list(requests()), Bench(max_held="64MiB")
    record = logs([log(trace) for trace in range(1, 301)]).SerializeToString()
    tracemalloc.start()
    try:
        for body in bodies:
            bench.assembly.take(split_traces(body, lambda _: True).spans, ())
        bench.assembly.take((), split_logs(record, lambda _: True).logs)
        real = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert real <= bench.value("open_bytes") <= 2 * real


def test_a_better_version_of_a_span_takes_the_place_of_the_other(bench) -> None:
    bench.take(span(1, name="first", end_time_unix_nano=1))
    held = bench.value("open_bytes")
    bench.take(*(span(1, name="first", end_time_unix_nano=end) for end in range(2, 50)))
    assert bench.value("open_bytes") < held + 48 * 100, "resources of each request still count, the spans do not"


def test_every_series_exists_before_anything_happened(bench) -> None:
    for closed_by in ("complete", "quiet", "max_wait", "evicted", "shutdown"):
        assert bench.value("closed_traces_total", closed_by=closed_by) == 0
    assert bench.value("dropped_traces_total", reason="no_marker") == 0
    assert bench.value("evictions_total", what="spans") == bench.value("waiting_spans") == 0


# ---------------------------------------------------------------- a restart


def test_a_trace_that_was_begun_before_a_restart_waits_as_long_as_it_would_have(bench: Bench) -> None:
    bench.assembly.resume([raw_span(span(2, 1))], [], bench.now - 20)
    assert bench.value("waiting_spans") == 1
    assert bench.value("spans_total") == 0, "another process counted it"
    assert bench.after(ORPHAN_IDLE - 21) == []
    assert bench.after(1) == [(1, [2], "quiet")]
    assert bench.value("read_spans_total") == 1


def test_a_trace_that_was_closed_before_a_restart_is_opened_by_news_alone(bench: Bench) -> None:
    bench.assembly.resume_closed([raw_span(span(1)), raw_span(span(2, 1))], [], bench.now - 20)
    bench.take((1, 0), (2, 1))
    assert bench.value("duplicate_spans_total") == 2
    assert bench.after(IDLE) == []
    bench.take((3, 1))
    assert bench.after(IDLE) == [(1, [1, 2, 3], "complete")]


def test_what_was_let_go_before_a_restart_is_still_recognised_and_still_forgotten(bench: Bench) -> None:
    bench.assembly.resume_gone((1).to_bytes(16, "big"), array("Q", [1, 2]), bench.now - 3000)
    bench.take((1, 0), (2, 1))
    assert bench.after(IDLE) == []
    assert bench.value("remembered_traces") == 1
    bench.after(600)
    assert bench.value("remembered_traces") == 0


def test_whoever_keeps_the_spans_learns_once_that_they_were_let_go(bench: Bench) -> None:
    def gone() -> list[tuple[int, list[int]]]:
        return [(int.from_bytes(trace, "big"), list(ids)) for trace, ids in bench.assembly.take_gone()]

    bench.take((1, 0), (2, 1))
    bench.after(IDLE)
    assert gone() == []
    bench.after(ORPHAN_IDLE)
    assert gone() == [(1, [1, 2])]
    assert gone() == []
    bench.take((2, 1))
    assert gone() == [(1, [1, 2])], "a repeat is not held either"


def test_an_erased_trace_is_never_read_and_its_spans_are_accounted_for(bench: Bench) -> None:
    bench.take(span(1, trace=1), span(1, trace=2))
    bench.assembly.erase({span(1, trace=1).trace_id})
    assert [shown(each)[0] for each in bench.assembly.held()] == [2]
    assert bench.after(0) == []
    assert bench.value("dropped_spans_total", reason="no_marker") == 1
    bench.take(span(1, trace=1))
    assert bench.value("duplicate_spans_total") == 1, "what comes again is known"
