"""Finds the markers of GenAI conventions in the raw bytes of spans and log records."""

from __future__ import annotations

import re

_STRING_TAGS = (b"\n", b"\x12", b"b")
"""KeyValue.key and InstrumentationScope.name (field 1), Span.Event.name (2), LogRecord.event_name (12)."""


def patterns(markers: tuple[bytes, ...]) -> list[re.Pattern[bytes]]:
    """Patterns of which one is found where a string begins with a marker.

    On the wire a short string stands behind its tag and one byte of length. Looking only there takes a quarter of
    the time of a search for every marker everywhere, and is not misled by texts that mention one.
    """
    if not markers:
        return []
    first = b"".join(re.escape(marker[:1]) for marker in markers)
    words = b"|".join(re.escape(marker) for marker in markers)
    return [re.compile(re.escape(tag) + b".(?=[" + first + b"])(?:" + words + b")", re.DOTALL) for tag in _STRING_TAGS]
