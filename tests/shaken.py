"""Runs the command line with a clock that somebody else sets: `python -m tests.shaken FILE serve ...`.

FILE holds the seconds, as a double, by which the clock on the wall is ahead of the real one.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path


def main() -> None:
    file, *arguments = sys.argv[1:]
    with Path(file).open("r+b") as handle:
        ahead, real = mmap.mmap(handle.fileno(), 8), time.time
    time.time = lambda: real() + struct.unpack_from("d", ahead)[0]
    from tracescore.cli import main as cli
    from tracescore.pipeline import journal

    journal._TOTALS_EVERY = 0.5  # so that not all rounds are counted anew
    sys.argv = ["tracescore", *arguments]
    cli.main()


if __name__ == "__main__":
    main()
