"""One line per event of the process's life: time, level, stage, and key=value pairs."""

from __future__ import annotations

import logging
import sys
import time


class _Line(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        record.stage = record.name.removeprefix("tracescore.").partition(".")[0]
        record.level = record.levelname.lower()
        return super().format(record)


def to_stderr(level: int = logging.INFO) -> None:
    """Sends the logs of tracescore to stderr; those of libraries only from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Line("%(asctime)s.%(msecs)03dZ level=%(level)s stage=%(stage)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("tracescore").setLevel(level)
