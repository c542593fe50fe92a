"""What is remembered, for how long, and who pays for it."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import pytest

from tracescore.errors import JudgeError
from tracescore.judge.cache import Cache
from tracescore.runtime import gather

pytestmark = pytest.mark.anyio


class Counting:
    """Computes a key's value and counts how often."""

    def __init__(self) -> None:
        self.computed: list[str] = []

    def of(self, key: str):
        async def compute() -> str:
            self.computed.append(key)
            return key.upper()

        return compute


async def test_the_least_recently_used_value_goes_first() -> None:
    cache, counting = Cache[str](2), Counting()
    for key in "abacab":
        assert await cache.get(key, counting.of(key)) == key.upper()
    assert counting.computed == ["a", "b", "c", "b"]


async def test_all_who_ask_at_once_share_one_computation() -> None:
    cache, counting = Cache[str](2), Counting()
    assert await gather([lambda: cache.get("a", counting.of("a"))] * 5) == ["A"] * 5
    assert counting.computed == ["a"]


async def test_an_error_is_not_remembered() -> None:
    async def fail() -> str:
        raise JudgeError("judge_unreachable")

    cache, counting = Cache[str](2), Counting()
    with pytest.raises(JudgeError):
        await cache.get("a", fail)
    assert await cache.get("a", counting.of("a")) == "A"


async def test_clearing_forgets_everything() -> None:
    cache, counting = Cache[str](2), Counting()
    await cache.get("a", counting.of("a"))
    cache.clear()
    await cache.get("a", counting.of("a"))
    assert counting.computed == ["a", "a"]


async def test_what_a_failed_computation_worked_on_is_freed_at_once() -> None:
    class Text:
        pass

    async def fail(_text: Text) -> str:
        raise JudgeError("judge_unreachable")

    gc.disable()
    try:
        text = Text()
        gone = weakref.ref(text)
        with pytest.raises(JudgeError):
            await Cache[str](2).get("a", partial(fail, text))
        del text
        assert gone() is None
    finally:
        gc.enable()
