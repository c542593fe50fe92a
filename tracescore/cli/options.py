"""What the commands share: the option for a configuration, and how they read and print lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import orjson
import typer

from tracescore.errors import UsageError

if TYPE_CHECKING:
    from tracescore.config import Config

ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Configuration; without it the embedded defaults."),
]


def configured(path: Path | None, otlp_out: str | None = None, *, secrets: bool = False) -> Config:
    """The configuration of a file, or the defaults, with scores also to `otlp_out`. ConfigError, UsageError."""
    from tracescore.config import Config, OtlpExporterConfig
    from tracescore.config.checks import cross_checks
    from tracescore.config.file import load

    config = load(path, secrets=secrets) if path else Config()
    if otlp_out is None:
        return config
    try:
        target = OtlpExporterConfig(endpoint=otlp_out, protocol="grpc" if urlsplit(otlp_out).port == 4317 else "http")
    except ValueError:  # pydantic's, or urlsplit's for a port that is none
        raise UsageError(f"--otlp-out: http://HOST:PORT or https://HOST expected; got {otlp_out!r}") from None
    config = config.model_copy(update={"exporters": config.exporters.model_copy(update={"otlp": target})})
    for conflict in cross_checks(config):
        raise UsageError(f"--otlp-out: {otlp_out} {conflict.what}")
    return config


def lines_of(file: Path) -> list[bytes]:
    """The lines of a file that a command was given; UsageError when it cannot be read."""
    try:
        return file.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None


def print_json(row: object) -> None:
    """A line of JSON, in UTF-8 whatever the terminal's encoding is."""
    sys.stdout.buffer.write(orjson.dumps(row) + b"\n")
    sys.stdout.buffer.flush()
