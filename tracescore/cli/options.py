"""What the commands share: the option for a configuration, and how they read and print lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlsplit

import orjson
import typer

from tracescore.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tracescore.config import Config

_Section = TypeVar("_Section", bound="BaseModel")

ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Configuration file; without it the defaults."),
]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines instead of a table.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What options say instead of the configuration: a URL for scores, and addresses to listen on."""

    otlp_out: str | None = None
    http: str | None = None
    grpc: str | None = None
    metrics: str | None = None
    page: str | None = None

    def given(self) -> Iterator[tuple[str, str, str, object]]:
        """For each option that was given: its name, what was typed, the setting it stands for, and its value."""
        settings = {
            "otlp_out": "exporters.otlp",
            "http": "receiver.http.listen",
            "grpc": "receiver.grpc.listen",
            "metrics": "exporters.prometheus.listen",
            "page": "web.listen",
        }
        for name, setting in settings.items():
            typed = getattr(self, name)
            if typed is not None:
                value = {"endpoint": typed, "protocol": _protocol(typed)} if name == "otlp_out" else typed
                yield f"--{name.replace('_', '-')}", typed, setting, value


def _protocol(url: str) -> str:
    try:
        return "grpc" if urlsplit(url).port == 4317 else "http"
    except ValueError:  # a port that is none: the URL is refused
        return "http"


def configured(path: Path | None, overrides: Overrides | None = None, *, secrets: bool = False) -> Config:
    """The configuration of a file, or the defaults, with what options override. ConfigError, UsageError."""
    from pydantic import ValidationError

    from tracescore.config import Config
    from tracescore.config.checks import cross_checks
    from tracescore.config.file import load

    config = load(path, secrets=secrets) if path else Config()
    given = list(overrides.given()) if overrides else []
    for option, typed, setting, value in given:
        try:
            config = _with(config, setting.split("."), value)
        except ValidationError as error:
            what = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f"{option}: {what}; got {typed!r}") from None
    for conflict in cross_checks(config) if given else ():
        blamed = [(o, typed) for o, typed, setting, _ in given if any(b.startswith(setting) for b in conflict.between)]
        option, typed = (blamed or [given[0][:2]])[0]
        raise UsageError(f"{option} {typed}: {conflict.path}: {conflict.what}")
    return config


def _with(section: _Section, steps: Sequence[str], value: object) -> _Section:
    """A section of the configuration with one setting changed. ValidationError of pydantic."""
    name, *deeper = steps
    if deeper:
        changed = _with(getattr(section, name), deeper, value)
    else:  # the others were read from a file, and would have to be written again to be validated
        changed = getattr(type(section).model_validate({name: value}), name)
    return section.model_copy(update={name: changed})


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
