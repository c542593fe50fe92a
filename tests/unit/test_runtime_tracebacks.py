"""What an exception holds once it has been turned into words of ours: nothing."""

from __future__ import annotations

from tracescore.runtime import drop_tracebacks


def raised(error: Exception) -> Exception:
    try:
        raise error
    except (ValueError, KeyError) as caught:
        return caught


def test_neither_the_error_nor_what_led_to_it_keeps_a_frame() -> None:
    first, second, third, last = (raised(ValueError(str(number))) for number in range(4))
    second.__cause__, third.__context__ = first, second
    last.__cause__ = last.__context__ = third
    drop_tracebacks(last)
    assert [error.__traceback__ for error in (first, second, third, last)] == [None] * 4


def test_errors_that_led_to_one_another_are_no_endless_way() -> None:
    one, other = raised(ValueError()), raised(KeyError())
    one.__cause__, other.__cause__ = other, one
    drop_tracebacks(one)
    assert (one.__traceback__, other.__traceback__) == (None, None)
