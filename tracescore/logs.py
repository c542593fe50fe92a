"""One line per event of the process's life: time, level, stage, and key=value pairs, never what users wrote."""

import logging
import sys
import time
import traceback


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


def defect(log: logging.Logger, error: BaseException, **facts: object) -> None:
    """Logs a defect: the type of the error and where it happened, the innermost frame first.

    Its text stays out, which may repeat what users wrote; so do those of `logging.Logger.exception`, which is
    therefore used nowhere. `facts` must be safe to log.
    """
    known = "".join(f" {name}={value}" for name, value in facts.items())
    frames = reversed(traceback.extract_tb(error.__traceback__))
    where = " < ".join(f"{frame.filename}:{frame.lineno}:{frame.name}" for frame in frames)
    log.error('event=defect%s error=%s at="%s"', known, type(error).__name__, where)


def plain(text: str) -> str:
    """Somebody else's text made fit for one line and one pair of quotes: printable, at most 300 characters."""
    return "".join(char if char.isprintable() and char != '"' else "?" for char in text[:300])
