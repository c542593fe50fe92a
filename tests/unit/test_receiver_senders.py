"""What one sender may send, and how much of the room it may hold."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from tests.otlp import Collected, raw_span, span, traces
from tests.results import SettableClock
from tracescore.assembly import Assembly
from tracescore.config import AssemblyConfig, ReceiverConfig, SenderLimitsConfig
from tracescore.receiver.intake import Intake
from tracescore.receiver.refusals import Refused
from tracescore.receiver.senders import Senders


class Rig:
    def __init__(self, **limits: object) -> None:
        self.clock, self.registry = SettableClock(), CollectorRegistry()
        settings = SenderLimitsConfig.model_validate(limits) if limits else None
        self.senders = Senders(settings, frozenset({"shop"}), self.registry, self.clock)

    def send(self, sender: str, size: int = 10) -> bool:
        try:
            self.senders.asks(sender)
        except Refused as refused:
            return refused.reason != "throttled" or not refused.status.retryable
        self.senders.sent(sender, size)
        return True

    def throttled(self, sender: str, reason: str = "rate") -> float | None:
        labels = {"sender": sender, "reason": reason}
        return self.registry.get_sample_value("tracescore_receiver_throttled_requests_total", labels)


def test_by_default_nobody_is_held_to_a_rate() -> None:
    rig = Rig()
    assert all(rig.send("shop", 2**20) for _ in range(1_000))


def test_requests_per_second_are_of_each_sender() -> None:
    rig = Rig(requests_per_second=2.0)
    assert [rig.send("shop") for _ in range(3)] == [True, True, False]
    assert rig.send("10.0.0.1")
    rig.clock.now += 0.5
    assert [rig.send("shop") for _ in range(2)] == [True, False]
    assert rig.throttled("shop") == 2


def test_a_rate_under_one_a_second_lets_one_through_at_a_time() -> None:
    rig = Rig(requests_per_second=0.1)
    assert [rig.send("shop") for _ in range(2)] == [True, False]
    rig.clock.now += 10.1
    assert [rig.send("shop") for _ in range(2)] == [True, False]


def test_bytes_that_came_are_paid_back_before_more_may_come() -> None:
    rig = Rig(bytes_per_second="1KiB")
    assert rig.send("shop", 3 * 1024)
    rig.clock.now += 1.9
    assert not rig.send("shop")
    rig.clock.now += 0.2
    assert rig.send("shop")


def test_senders_without_a_token_are_counted_together(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(requests_per_second=1.0)
    for number in range(3):
        assert [rig.send(f"10.0.0.{number}") for _ in range(3)] == [True, False, False]
    assert rig.throttled("(address)") == 6
    assert rig.throttled("10.0.0.1") is None
    assert len(caplog.records) == 3, "each is said once a minute"


def test_from_half_of_the_room_on_no_sender_holds_more_than_half_of_it() -> None:
    settings = AssemblyConfig.model_validate({"max_held": "40KiB"})
    assembly = Assembly(settings, (), CollectorRegistry(), SettableClock())

    def take(sender: str, number: int) -> bool:
        if not (assembly.room() and assembly.fair(sender)):
            return False
        assembly.take([raw_span(span(1, trace=number, attrs={"text": "x" * 2_000}))], [], sender)
        return True

    held = sum(take("loud", number) for number in range(1, 100))
    assert 5 <= held <= 7
    assert assembly.room()
    assert all(take("quiet", number) for number in range(100, 100 + held - 1))
    assert assembly.fair(""), "whom nobody knows is held to the whole room alone"
    while assembly.open_traces:
        assembly.flush()
    assert assembly.fair("loud")


@pytest.mark.anyio
async def test_who_holds_half_of_the_room_is_refused_and_others_are_not() -> None:
    sink, registry = Collected(), CollectorRegistry()
    sink.greedy = {"10.0.0.1"}
    intake = Intake(ReceiverConfig(), sink, lambda _: True, registry)
    body = traces([span(1)]).SerializeToString()
    with pytest.raises(Refused) as raised:
        await intake.accept("http", "traces", body, sender="10.0.0.1")
    assert raised.value.reason == "throttled"
    assert await intake.accept("http", "traces", body, sender="10.0.0.2") == 0
    labels = {"sender": "(address)", "reason": "share"}
    assert registry.get_sample_value("tracescore_receiver_throttled_requests_total", labels) == 1
