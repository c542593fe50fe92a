"""Requests that are small and would cost much are refused before anything is built of them."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from tests.otlp import log, logs, span, traces
from tracescore.errors import DecodeError
from tracescore.otlp.bounds import DENSE, LOG, SMALL, SPAN, RequestLimits, TooMany, fits
from tracescore.otlp.json import MOST_ELEMENTS, traces_document_to_protobuf
from tracescore.otlp.split import logs_in_steps, split_logs, split_traces, traces_in_steps

LIMITS = RequestLimits(containers=100, records=50, traces=10)
EMPTY_RESOURCE, EMPTY_SCOPE, EMPTY_RECORD = b"\n\0", b"\x12\0", b"\x12\0"
MILLIONS = 4_000_000


def field(number: int, content: bytes) -> bytes:
    length, size = len(content), b""
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def run(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def spans_of_traces(count: int) -> bytes:
    return traces([span(1, trace=number) for number in range(1, count + 1)]).SerializeToString()


REFUSED = {
    "empty resources": (EMPTY_RESOURCE * MILLIONS, "at most 100 resources and scopes"),
    "empty scopes": (field(1, EMPTY_SCOPE * MILLIONS), "at most 100 resources and scopes"),
    "fields that nobody knows": (b"\x18\0" * MILLIONS, "at most 100 resources and scopes"),
    "empty spans": (field(1, field(2, EMPTY_RECORD * MILLIONS)), "at most 50 spans or log records"),
    "empty spans, not dense": (field(1, field(2, EMPTY_RECORD * 51)), "at most 50 spans or log records"),
    "traces": (spans_of_traces(11), "at most 10 traces"),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("in_steps", [traces_in_steps, logs_in_steps])
def test_counting_stops_at_the_limit_and_says_which_it_is(body: bytes, message: str, in_steps: Any) -> None:
    if in_steps is logs_in_steps and "traces" in message:
        body = logs([log(trace) for trace in range(1, 12)]).SerializeToString()
    began = time.process_time()
    with pytest.raises(TooMany, match=f"body: {message} expected; send smaller batches"):
        run(in_steps(body, lambda _: True, LIMITS))
    assert time.process_time() - began < 0.2


def test_what_is_just_within_the_limits_is_split() -> None:
    assert run(traces_in_steps(spans_of_traces(10), lambda _: True, LIMITS)).received == 10
    assert run(traces_in_steps(spans_of_traces(50), lambda _: False, LIMITS)).received == 50


def test_a_dense_body_within_the_limits_is_split_like_any_other() -> None:
    body = traces([span(number, attrs={"k": "v" * 200}) for number in range(1, 20_001)]).SerializeToString()
    assert len(body) > DENSE
    assert len(run(traces_in_steps(body, lambda _: True, RequestLimits(10, 20_000, 1))).spans) == 20_000


def test_much_is_split_in_steps() -> None:
    body = spans_of_traces(2_000)
    assert sum(1 for _ in itertools.islice(traces_in_steps(body, lambda _: True), 100)) >= 2_000 // 256


HUGE = {
    "attributes": b"\x4a\0",
    "events": b"\x5a\0",
    "links": b"\x6a\0",
    "attributes of an event": field(11, b"\x1a\0" * SMALL),
    "values of an array": field(9, field(2, field(5, b"\n\0" * SMALL))),
    "values of a map in a map": field(9, field(2, field(6, field(1, field(2, field(6, b"\n\0" * SMALL)))))),
}


@pytest.mark.parametrize("content", HUGE.values(), ids=HUGE)
def test_a_span_of_very_many_fields_is_rejected_and_the_others_are_kept(content: bytes) -> None:
    good = span(1).SerializeToString()
    bad = span(2).SerializeToString() + (content if len(content) > SMALL else content * SMALL)
    split = split_traces(field(1, field(2, field(2, bad) + field(2, good))), lambda _: True)
    assert (split.received, split.rejected, [each.span for each in split.spans]) == (2, 1, [good])


def test_a_log_record_of_very_many_fields_is_rejected() -> None:
    bad = log(1).SerializeToString() + field(5, field(5, b"\n\0" * SMALL))
    split = split_logs(field(1, field(2, field(2, bad))), lambda _: True)
    assert (split.received, split.rejected) == (1, 1)


def test_a_resource_of_very_many_fields_rejects_what_is_of_it() -> None:
    body = field(1, field(1, b"\n\0" * SMALL) + field(2, field(2, span(1).SerializeToString())))
    assert split_traces(body, lambda _: True).rejected == 1


def test_a_long_text_is_no_reason_to_reject() -> None:
    text = {"text": "\n\0" * SMALL}
    assert run(fits(span(1, attrs=text).SerializeToString(), SPAN))
    assert run(fits(log(1, attrs=text).SerializeToString(), LOG))


def test_a_list_of_very_many_elements_in_json_is_refused_unread() -> None:
    with pytest.raises(DecodeError, match=f"at most {MOST_ELEMENTS} elements expected; got {MOST_ELEMENTS + 1}"):
        traces_document_to_protobuf({"resourceSpans": [{}] * (MOST_ELEMENTS + 1)})
