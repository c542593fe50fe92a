"""JSON for the disk and for reports: whatever texts hold, every reader takes it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import orjson
import pytest

from tracescore.net.wire import dumps_utf8


@dataclass
class Inner:
    text: str
    names: frozenset[str] = frozenset({"b", "a"})


@dataclass
class Outer:
    inner: tuple[Inner, ...] = field(default_factory=tuple)


@pytest.mark.parametrize("indent", [False, True])
@pytest.mark.parametrize(
    ("text", "read"),
    [("plain", "plain"), ("\U0001f600 é", "\U0001f600 é"), ("half \ud83d", "half ?"), ("\udc00 half", "? half")],
)
def test_a_text_comes_back_and_of_half_a_character_pair_a_mark(text: str, read: str, indent: bool) -> None:
    written = dumps_utf8({"outer": Outer((Inner(text),))}, indent=indent)
    assert orjson.loads(written) == json.loads(written) == {"outer": {"inner": [{"text": read, "names": ["a", "b"]}]}}
    assert (b"\n" in written) == indent


def test_what_is_no_data_is_an_error() -> None:
    with pytest.raises(TypeError, match="object is not JSON"):
        dumps_utf8({"a": object()})
