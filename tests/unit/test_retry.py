"""How long to pause, what Retry-After says, and which answers may change: one policy and one table for all."""

from __future__ import annotations

from email.utils import formatdate

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracescore.net.otlp_answers import OtlpOutcome, grpc_answer, http_answer, retry_info, retry_trailers
from tracescore.net.retry import Backoff, is_transient, retry_after
from tracescore.receiver.refusals import REFUSALS

SECONDS = st.floats(0.01, 1_000)


@given(st.integers(1, 10**6), SECONDS, SECONDS, st.sampled_from([0.0, 0.5]))
def test_pauses_double_up_to_the_longest_and_chance_only_shortens_them(
    failures: int, first: float, most: float, spread: float
) -> None:
    whole = min(most, first * 2.0 ** min(failures - 1, 30))
    pause = Backoff(first, most, spread=spread).pause(failures)
    assert whole * (1 - spread) <= pause <= whole


@pytest.mark.parametrize(("asked", "pause"), [(7.0, 7.0), (0.25, 0.25), (86_400.0, 300.0), (None, 0.5), (0.0, 0.5)])
def test_what_the_other_side_asks_for_counts_up_to_a_limit_and_at_once_is_no_answer(
    asked: float | None, pause: float
) -> None:
    assert Backoff(spread=0).pause(1, asked) == pause


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        ({"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after-ms": "x"}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, lambda: 1_000_000.0) == seconds


@pytest.mark.parametrize(
    ("taken", "statuses"),
    [
        ("accepted", {200, 202, 299}),
        ("again", {429, 502, 503, 504}),
        ("refused", {301, 400, 401, 404, 408, 413, 500, 501}),
    ],
)
def test_otlp_over_http_comes_back_after_the_statuses_of_the_specification_alone(
    taken: OtlpOutcome, statuses: set[int]
) -> None:
    assert {http_answer(status) for status in statuses} == {taken}


def test_otlp_over_grpc_comes_back_after_the_codes_of_the_specification_alone() -> None:
    codes = {code.name for code in grpc.StatusCode if grpc_answer(code, None) == "again"}
    assert codes == {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
    assert [grpc_answer(code, None) for code in (grpc.StatusCode.OK, grpc.StatusCode.INTERNAL)] == [
        "accepted",
        "refused",
    ]


@pytest.mark.parametrize(("after", "taken"), [(None, "refused"), (0.0, "again"), (2.0, "again")])
def test_an_exhausted_destination_is_asked_again_only_where_it_says_when(
    after: float | None, taken: OtlpOutcome
) -> None:
    assert grpc_answer(grpc.StatusCode.RESOURCE_EXHAUSTED, after) == taken


def test_what_the_receiver_says_of_coming_back_is_what_the_exporters_read() -> None:
    assert retry_info(retry_trailers(grpc.StatusCode.UNAVAILABLE, "full", 1.5)) == 1.5
    assert retry_info([]) is None
    assert retry_info([("grpc-status-details-bin", b"\xff")]) is None


def test_a_refusal_is_retryable_over_both_protocols_or_over_none() -> None:
    for status in REFUSALS.values():
        assert status.retryable == (http_answer(status.http) == "again")
    assert {reason for reason, status in REFUSALS.items() if status.retryable} == {
        "crowded",
        "throttled",
        "too_many_attempts",
        "full",
        "slow",
        "failed",
        "unreachable",
    }


def test_an_api_that_is_not_otlp_may_take_a_request_after_any_trouble_of_its_own() -> None:
    assert {status for status in range(200, 505) if is_transient(status)} == {408, 425, 429, *range(500, 505)}
