"""Trace ids of gold requests, which every replica recognises without the app's help.

The first four bytes of such an id are a keyed hash of the other twelve, which are random: a process with the key
recognises it, and one id in four thousand million is one by accident. The key is made of `sampling.salt`, which
all replicas share anyway.
"""

import hashlib
import secrets

_LENGTH = 4


class GoldTraceIds:
    """Makes and recognises ids. `salt` is what all replicas have in common."""

    def __init__(self, salt: str) -> None:
        key = hashlib.sha256(salt.encode()).digest()
        self._hash = hashlib.blake2b(digest_size=_LENGTH, key=key, person=b"gold")  # copied for each id

    def new(self) -> str:
        """The trace id of a gold request, 32 hex digits."""
        rest = secrets.token_bytes(16 - _LENGTH)
        return (self._mark(rest) + rest).hex()

    def is_gold(self, trace_id: bytes) -> bool:
        """Whether a trace (16 bytes of id) was caused by a gold request."""
        return self._mark(trace_id[_LENGTH:]) == trace_id[:_LENGTH]

    def _mark(self, rest: bytes) -> bytes:
        keyed = self._hash.copy()
        keyed.update(rest)
        return keyed.digest()


def traceparent(trace_id: str) -> str:
    """The W3C header that makes the app's spans part of this trace, as a sampled one."""
    return f"00-{trace_id}-{secrets.token_hex(8)}-01"
