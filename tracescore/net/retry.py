"""What everything that tries again shares: the time that pauses are kept by, and what Retry-After says."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio


@dataclass(frozen=True, slots=True)
class Timing:
    """Monotonic seconds, and how to wait for some: deadlines and pauses do not move with the clock on the wall."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


REAL_TIME = Timing()


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (seconds or a date); None when not given or unreadable.

    `now` is in Unix seconds, as the date is.
    """
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        text = headers["retry-after"].strip()
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return float(text)
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now())
    except ValueError:
        return None
