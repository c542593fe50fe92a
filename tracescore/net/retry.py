"""What everything that tries again shares: how long it pauses, the time it goes by, and which answers may change.

What an answer over OTLP means, with its table of statuses, is in `otlp_answers.py`.
"""

import email.utils
import random
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


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double from `first` to `most` seconds; what the other side asks for counts up to `longest`.

    A share `spread` of each is left to chance, so that replicas do not come back at one moment ("equal jitter" of
    the AWS Architecture Blog, Exponential Backoff And Jitter, 2015).
    """

    first: float = 0.5
    most: float = 30.0
    longest: float = 300.0
    spread: float = 0.5

    def pause(self, failures: int, asked: float | None = None) -> float:
        """Seconds to wait after so many `failures` in a row.

        `asked`: what Retry-After or RetryInfo says, None or 0 where it says nothing.
        """
        if asked:
            return min(asked, self.longest)
        doubled = self.first * 2.0 ** min(failures - 1, 64)
        return min(self.most, doubled) * random.uniform(1 - self.spread, 1)  # noqa: S311 - hides nothing


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
    except (ValueError, OverflowError):  # a date may have a year of twenty digits
        return None


def is_transient(status: int) -> bool:
    """Whether an HTTP API that is not OTLP may take the same request later.

    A timeout (408), too early (425), too many requests (429), and every trouble of the server's own.
    """
    return status in {408, 425, 429} or status >= 500
