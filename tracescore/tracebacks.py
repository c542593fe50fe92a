"""Exceptions that hold nothing once they have been turned into words of ours."""

from __future__ import annotations


def let_go(error: BaseException) -> None:
    """Takes the tracebacks from an exception and from all those that led to it.

    A traceback holds the frames it passed, and they what they worked on: the body of a request, the text of a user.
    Libraries keep exceptions where these frames can reach them, in a future, in a stream or in the list of their
    attempts. All that is then a ring, which is freed only when the garbage collector comes.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            waiting += each.__cause__, each.__context__
