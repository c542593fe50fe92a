"""Keeps the memory of one request for the next."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h."""
_KEPT = 64 * 2**20
_LARGEST = 32 * 2**20
"""Bytes of free memory that are kept at most, and the largest block that may come from it: glibc takes no more."""


def keep_freed_memory() -> None:
    """Makes glibc keep what was freed instead of giving it back to the system at once; elsewhere does nothing.

    A body is copied several times on its way from the socket to the parser, and each copy is a large block: with
    fresh pages for each of them, half of the CPU of the receiver goes into page faults (tests/benchmarks/receiver.py).
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
