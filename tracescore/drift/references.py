"""References that are given rather than learned, for processes that start without knowing anything."""

from collections.abc import Collection
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tracescore.config.drift import DETECTORS, DriftConfig, GivenReferences
from tracescore.config.yaml import read_yaml, text_of
from tracescore.drift.observations import Name
from tracescore.errors import ConfigError, UsageError
from tracescore.model import Measure

EVERY = "*"
"""Stands for the services that are not named."""
_FORM = "{service: {detector: number between 0 and 1}} expected, as `tracescore baseline export` writes it"


def with_references(settings: DriftConfig, own: Collection[Measure] = ()) -> DriftConfig:
    """The settings with the references of the file in the place of its name; UsageError when it cannot be read.

    `own`: measures of the user's own.
    """
    if not isinstance(settings.references, str):
        return settings
    return settings.model_copy(update={"references": _read(settings.references, (*DETECTORS, *own))})


def _read(path: str, known: Collection[Name]) -> GivenReferences:
    try:
        _, values = read_yaml(text_of(Path(path)), path)
        given = TypeAdapter(GivenReferences).validate_python(values, strict=True)
    except ConfigError as error:
        raise UsageError(f"drift.references: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(str(step)[:40] for step in wrong["loc"] if step != "[key]")
        raise UsageError(f"drift.references: {path}: {where or 'top'}: {wrong['msg']}; {_FORM}") from None
    for service, names in given.items():
        for name in names:
            if name not in known:
                where = f"{path}: {service[:40]}.{name[:40]}"
                raise UsageError(f"drift.references: {where}: one of {', '.join(known)} expected")
    return given


def given_reference(settings: DriftConfig, service: str, name: Name) -> float | None:
    """The reference of a detector of a service; None where it is to be learned. A file must have been read before."""
    given = settings.references if isinstance(settings.references, dict) else {}
    return given.get(service, {}).get(name, given.get(EVERY, {}).get(name))
