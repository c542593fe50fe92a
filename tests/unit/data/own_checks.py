"""Functions of a user who is not careful: what measures of one's own must outlive."""

from __future__ import annotations

import asyncio
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


def cites_a_source(answer, contexts):
    return "[1]" in answer, f"of {len(contexts)}"


async def later(answer):
    await asyncio.sleep(0.01)
    return len(answer) / 10


def told(answer, question=None, history=None, contexts=None):
    """Does what the answer says."""
    sys.stdout.write("SECRET")
    sys.stdout.flush()
    os.write(1, b'{"id": 1, "value": 1, "reason": ""}\n')
    return _DOES[answer]()


def _exits():
    sys.exit(3)


def _forks():
    os.fork()
    return 0.25


def _starts_others():
    Path(tempfile.gettempdir(), "own_checks.pid").write_text(str(subprocess.Popen(["sleep", "53"]).pid))
    time.sleep(60)


def _raises():
    raise ValueError("SECRET")


def _leaves_a_bomb():
    threading.Thread(target=lambda: (time.sleep(0.1), os._exit(1))).start()
    return 1


class _Scalar:
    def item(self):
        return 0.5


_DOES = {
    "well": lambda: 1,
    "yes": lambda: True,
    "none": lambda: None,
    "none, and why": lambda: (None, "no link in it"),
    "numpy": _Scalar,
    "long": lambda: (0.5, "\ud800" + "x" * 10_000_000),
    "hangs": lambda: time.sleep(60),
    "holds the lock": lambda: re.match(r"(a+)+$", "a" * 40 + "b"),
    "starts others": _starts_others,
    "exits": _exits,
    "is gone": lambda: os._exit(3),
    "forks": _forks,
    "raises": _raises,
    "interrupts": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
    "closes everything": lambda: os.closerange(3, 100),
    "leaves a bomb": _leaves_a_bomb,
    "NaN": lambda: math.nan,
    "too much": lambda: 1.01,
    "far too much": lambda: 10**400,
    "a text": lambda: "x" * 10_000_000,
    "three": lambda: (1, 2, 3),
}
