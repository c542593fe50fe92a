"""Bodies without their content encoding."""

from __future__ import annotations

from isal import isal_zlib

from tracescore.net.wire import WINDOW_BITS
from tracescore.receiver.refusals import Refused, too_large

_MOST_MEMBERS = 64
"""Each costs a copy of what follows it; exporters write one."""


def inflate(body: bytes, encoding: str, max_size: int) -> bytes:
    """The body without its content encoding (gzip, deflate; empty or identity: as it is).

    Never holds more than `max_size` bytes, however far a small body would expand. Raises Refused.
    """
    if encoding in ("", "identity"):
        if len(body) > max_size:
            raise too_large(max_size)
        return body
    if encoding not in WINDOW_BITS:
        raise Refused("unsupported_encoding", "content encoding: one of gzip, deflate and identity expected")
    parts: list[bytes] = []
    rest, room = body, max_size
    while rest or not parts:  # a gzip file may have several members
        inflater = isal_zlib.decompressobj(wbits=WINDOW_BITS[encoding])
        try:
            part = inflater.decompress(rest, room + 1)
        except isal_zlib.error:  # type: ignore[misc]  # its stubs declare an instance
            raise Refused("malformed", f"body: {encoding} data expected; got {len(body)} other bytes") from None
        if len(part) > room:
            raise too_large(max_size)
        if not inflater.eof:
            raise Refused("malformed", f"body: the {encoding} data ends too early, after {len(body)} bytes")
        parts.append(part)
        if len(parts) > _MOST_MEMBERS:
            raise Refused("malformed", f"body: at most {_MOST_MEMBERS} {encoding} members expected")
        rest, room = inflater.unused_data, room - len(part)
    return b"".join(parts)
