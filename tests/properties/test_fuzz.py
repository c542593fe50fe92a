"""Everything that reads what others wrote, on damaged and made-up input, for a while.

Ten seconds each by default; TRACESCORE_FUZZ=600 TRACESCORE_SEED=0 by hand, which begins with a seed of its own. A
failure prints the seed, and TRACESCORE_SEED repeats it.
guided_fuzz.py beside this file lets coverage choose the input.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.properties import test_config, test_gold, test_judge_properties, test_receiver
from tracescore.config import InteractionsConfig
from tracescore.datasets import files
from tracescore.datasets.rows import case_of
from tracescore.errors import DecodeError, UsageError
from tracescore.interactions import read
from tracescore.model import RawTrace
from tracescore.otlp.decode import decode
from tracescore.otlp.json import traces_to_protobuf
from tracescore.otlp.split import split_traces

SECONDS = float(os.environ.get("TRACESCORE_FUZZ", "10"))
FIRST = int(os.environ.get("TRACESCORE_SEED", "1"))
CAPTURES = Path(__file__).parent.parent / "captures"
PROTOBUF = [file.read_bytes() for file in sorted(CAPTURES.glob("**/*.traces.pb")) if file.stat().st_size < 2**16]
JSON = [file.read_bytes() for file in sorted(CAPTURES.glob("**/*.traces.json")) if file.stat().st_size < 2**16]


def damaged(recorded: list[bytes]) -> st.SearchStrategy[bytes]:
    """A recording of a real app with some bytes changed, taken out, put in, or a piece of another one in it."""

    def damage(number: int, places: list[tuple[float, bytes, int]]) -> bytes:
        body = bytearray(recorded[number])
        for where, noise, cut in places:
            at = int(where * len(body))
            body[at : at + cut] = noise
        return bytes(body)

    pieces = st.builds(lambda n, at: recorded[n][at : at + 40], st.integers(0, len(recorded) - 1), st.integers(0, 5000))
    place = st.tuples(st.floats(0, 1), st.binary(max_size=3) | pieces, st.integers(0, 8))
    return st.builds(damage, st.integers(0, len(recorded) - 1), st.lists(place, max_size=4))


def read_all(body: bytes) -> None:
    by_trace = defaultdict(list)
    for each in split_traces(body, lambda _: True).spans:
        by_trace[each.trace_id].append(each)
    for trace_id, spans in by_trace.items():
        read(decode(RawTrace(trace_id, tuple(spans), (), "complete")), InteractionsConfig())


@given(damaged(PROTOBUF))
def recorded_in_protobuf(body: bytes) -> None:
    try:
        read_all(body)
    except DecodeError as error:
        note(str(error))


@given(damaged(JSON))
def recorded_in_json(body: bytes) -> None:
    try:
        read_all(traces_to_protobuf(body))
    except DecodeError as error:
        note(str(error))


QUOTES = "I said no;."
TABLES = {
    ".csv": f'question;answer;contexts\n"{QUOTES}";A.;"[""a"", ""b""]"\n'.encode(),
    ".tsv": "input\toutput\n\u00fcber\t{'answer': 'A.'}\n".encode("utf-16"),
    ".jsonl": b'{"question": "Q", "contexts": "[\'a\' \'b\']"}\n{"messages": [{"role": "user", "content": "Q"}]}\n',
    ".json": b'{"rows": [{"inputs": "{\\"question\\": \\"Q\\"}", "outputs": {"answer": "A."}}]}',
}


@given(st.sampled_from(sorted(TABLES)), damaged(list(TABLES.values())))
def rows_of_a_file(suffix: str, body: bytes) -> None:
    problems: files.Problems = []
    try:
        for _, row in files.read(body, suffix, problems):
            if isinstance(row, dict):
                case_of(row).interaction(1)
    except UsageError as error:
        note(str(error))


FUZZED: dict[str, Callable[..., None]] = {
    "splitter": test_receiver.test_bytes_are_split_and_decoded_or_are_a_decode_error,
    "readers": recorded_in_protobuf,
    "JSON": recorded_in_json,
    "replies": test_judge_properties.test_whatever_the_judge_says_the_only_error_is_a_judge_error,
    "configuration": test_config.test_no_value_of_a_section_is_a_defect,
    "rows": rows_of_a_file,
    "gold files": test_gold.test_any_file_is_read_whole_or_refused_with_lines,
}


@pytest.mark.timeout(60 + 2 * SECONDS)
@pytest.mark.parametrize("what", FUZZED)
def test_nothing_that_others_wrote_is_a_defect(what: str) -> None:
    number, until = FIRST or random.SystemRandom().randrange(2**32), time.monotonic() + SECONDS
    fuzz = FUZZED[what].hypothesis.fuzz_one_input  # type: ignore[attr-defined]  # what fuzzers call
    while time.monotonic() < until:
        try:
            fuzz(random.Random(number).randbytes(2_000))
        except BaseException:
            print(f"TRACESCORE_SEED={number}")  # noqa: T201 - shown where it fails
            raise
        number += 1
