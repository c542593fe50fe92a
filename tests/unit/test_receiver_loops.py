"""A span that comes round a third time is recognised; one that is sent again is not."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest

from tests.otlp import span, traces
from tests.results import SettableClock
from tracescore.net.wire import Envelope
from tracescore.otlp.bounds import UNLIMITED
from tracescore.receiver.loops import Loops
from tracescore.receiver.refusals import Refused

BODY = traces([span(1)]).SerializeToString()
OTHER = traces([span(2)]).SerializeToString()
JSON = orjson.dumps(
    {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}]}]}]}
)


HTTP = Envelope("http", "/v1/traces", (), json=False, encoding="")


class Rig:
    def __init__(self) -> None:
        self.clock, self.reason = SettableClock(), ""
        self.loops = Loops(2**20, UNLIMITED, self.clock)

    def send(self, body: bytes = BODY, signal: Any = "traces", *, taken: bool = True, **how: Any) -> bool:
        """Passes a request on; whether it was let."""
        try:
            with self.loops.passage(signal, HTTP._replace(**how), body) as passage:
                passage.taken = taken
        except Refused as refused:
            self.reason = refused.reason
            return False
        return True


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_the_third_time_within_a_minute_is_a_loop_whatever_the_encoding_and_is_said_once(rig: Rig, caplog) -> None:
    assert rig.send()
    assert rig.send(gzip.compress(BODY), encoding="gzip")
    assert not rig.send(JSON, json=True)
    assert rig.reason == "loop"
    assert not rig.send(traces([span(9), span(1)]).SerializeToString()), "in another batch"
    assert rig.send(OTHER)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["event=loop"]


def test_what_the_destination_did_not_take_may_come_again(rig: Rig) -> None:
    for _ in range(10):
        assert rig.send(taken=False)
    assert [rig.send() for _ in range(3)] == [True, True, False]


def test_a_request_that_comes_back_before_it_is_answered_goes_no_further_and_may_come_again(rig: Rig) -> None:
    with rig.loops.passage("traces", HTTP, BODY), rig.loops.passage("traces", HTTP, BODY):
        assert not rig.send()
        assert rig.reason == "crowded"
    assert rig.send()


def test_three_tenants_may_send_one_span_and_each_of_them_has_rounds_of_its_own(rig: Rig) -> None:
    tenants = [((b"x-scope-orgid", name), (b"user-agent", b"a")) for name in (b"a", b"b", b"c")]
    for _ in range(2):
        assert all(rig.send(headers=tenant) for tenant in tenants)
    assert not any(rig.send(headers=(tenant[0], (b"user-agent", b"b"))) for tenant in tenants)


def test_after_some_minutes_a_span_may_come_again(rig: Rig) -> None:
    assert [rig.send(), rig.send()] == [True, True]
    rig.clock.now += 121.0
    assert rig.send(OTHER)
    assert rig.send()


def test_of_a_large_request_enough_is_looked_at_however_it_is_batched(rig: Rig) -> None:
    spans = [span(number) for number in range(1, 1_001)]
    for order in (spans, spans[::-1]):
        assert rig.send(traces(order).SerializeToString())
    assert not rig.send(traces(spans[300:700]).SerializeToString())


@pytest.mark.parametrize(
    ("body", "how"),
    [(b"\xff", {}), (b"{", {"json": True}), (b"[1]", {"json": True}), (b"text", {"encoding": "gzip"}), (b"", {})],
)
def test_what_cannot_be_read_is_not_refused_here(rig: Rig, body: bytes, how: dict[str, Any]) -> None:
    assert all(rig.send(body, **how) for _ in range(3))


def test_logs_and_metrics_have_no_spans_to_come_round(rig: Rig) -> None:
    assert all(rig.send(signal=signal) for signal in ("logs", "metrics", "logs"))
