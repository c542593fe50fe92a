"""References that are given rather than learned, for processes that start without knowing anything."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tracescore.config.drift import DriftConfig, GivenReferences
from tracescore.config.yaml import read_yaml, text_of
from tracescore.drift.observations import Name
from tracescore.errors import ConfigError, UsageError

EVERY = "*"
"""Stands for the services that are not named."""
_FORM = "{service: {detector: number between 0 and 1}} expected, as `tracescore baseline export` writes it"


def with_references(settings: DriftConfig) -> DriftConfig:
    """The settings with the references of the file in the place of its name; UsageError when it cannot be read."""
    if not isinstance(settings.references, str):
        return settings
    return settings.model_copy(update={"references": _read(settings.references)})


def _read(path: str) -> GivenReferences:
    try:
        _, values = read_yaml(text_of(Path(path)), path)
        return TypeAdapter(GivenReferences).validate_python(values, strict=True)
    except ConfigError as error:
        raise UsageError(f"drift.references: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(str(step)[:40] for step in wrong["loc"] if step != "[key]")
        raise UsageError(f"drift.references: {path}: {where or 'top'}: {wrong['msg']}; {_FORM}") from None


def given_reference(settings: DriftConfig, service: str, name: Name) -> float | None:
    """The reference of a detector of a service; None where it is to be learned. A file must have been read before."""
    given = settings.references if isinstance(settings.references, dict) else {}
    return given.get(service, {}).get(name, given.get(EVERY, {}).get(name))
