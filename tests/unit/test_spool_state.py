"""States of parts: what has the types is read, whatever version wrote it, and nothing else is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from tests.states import reread
from tracescore.spool.state import Persisted, StateCodec


@dataclass(frozen=True, slots=True)
class Inner:
    mean: float
    rows: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Outer(Persisted):
    name: str
    inner: Inner
    count: int = 0


def renamed(plain: dict[str, Any]) -> dict[str, Any]:
    return {**plain, "inner": plain["middle"]}


def counted(plain: dict[str, Any]) -> dict[str, Any]:
    return {**plain, "count": len(plain["inner"]["rows"])}


CODEC = StateCodec(Outer, renamed, counted)
GOOD: dict[str, Any] = {"name": "a", "inner": {"mean": 1, "rows": [[1, 0.5]]}, "count": 7}


def test_what_is_written_is_read() -> None:
    state = Outer("a", Inner(0.5, ((3, 0.25),)), 2)
    assert reread(state) == state
    assert CODEC.load(orjson.loads(orjson.dumps(CODEC.plain(state)))) == state


VERSIONS = {
    "of now": {**GOOD, "version": 3},
    "of the second": {"name": "a", "inner": {"mean": 1, "rows": [[1, 0.5]]}, "version": 2},
    "of the first": {"name": "a", "middle": {"mean": 1, "rows": [[1, 0.5]]}, "version": 1},
    "from before there were versions": {"name": "a", "middle": {"mean": 1, "rows": [[1, 0.5]]}},
}


@pytest.mark.parametrize("plain", VERSIONS.values(), ids=VERSIONS.keys())
def test_every_version_so_far_is_read(plain: dict[str, Any]) -> None:
    expected = 7 if plain.get("version") == 3 else 1
    assert CODEC.load(plain) == Outer("a", Inner(1.0, ((1, 0.5),)), expected)


REFUSED = {
    "nothing": None,
    "a list": [],
    "a later version": {**GOOD, "version": 4},
    "no version": {**GOOD, "version": 0},
    "a version in words": {**GOOD, "version": "3"},
    "a version that is true": {**GOOD, "version": True},
    "an older shape than it says": {**GOOD, "inner": None, "version": 2},
    "the first without what moves": {"name": "a", "version": 1},
    "a part missing": {"name": "a", "version": 3},
    "a number in words": {**GOOD, "inner": {"mean": "1"}, "version": 3},
    "true for a number": {**GOOD, "count": True, "version": 3},
    "a fraction for a count": {**GOOD, "count": 1.5, "version": 3},
    "NaN": {**GOOD, "inner": {"mean": float("nan")}, "version": 3},
    "infinity in a row": {**GOOD, "inner": {"mean": 1, "rows": [[1, float("inf")]]}, "version": 3},
    "a row too short": {**GOOD, "inner": {"mean": 1, "rows": [[1]]}, "version": 3},
}


@pytest.mark.parametrize("plain", REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_is_a_value_error(plain: object) -> None:
    with pytest.raises(ValueError):
        CODEC.load(plain)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_the_types_themselves_refuse_what_is_no_number(number: str) -> None:
    with pytest.raises(ValueError, match="finite number"):
        CODEC._adapter.validate_json(f'{{"name": "a", "inner": {{"mean": 1, "rows": [[1, {number}]]}}}}')
