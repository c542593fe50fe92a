"""What a part of the process knows and must not lose: one typed state with a version, as JSON, and back.

What a released version wrote is read for ever: a baseline that took weeks to learn is not lost to an upgrade. A state
that its class does not read any more gets a migration, and the tests hold a file of every released version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import orjson
from pydantic import ConfigDict, TypeAdapter

Migration = Callable[[Any], Any]
"""Takes what one version wrote, as plain data, and gives what the next one would have written."""


class Persisted:
    """Base of the states, which are frozen dataclasses of plain values, rows as tuples, and further such dataclasses.

    Whatever does not agree with the types is refused, with no value turned into another; so are NaN and infinity.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, allow_inf_nan=False)


P = TypeVar("P", bound=Persisted)


class StateCodec(Generic[P]):
    """Writes and reads the state of one part.

    `migrations` are those of each version before the present one, the first one first. What has no version is of the
    first.
    """

    def __init__(self, kind: type[P], *migrations: Migration) -> None:
        self._adapter, self._migrations = TypeAdapter(kind), migrations
        self._names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        self.version = len(migrations) + 1

    def plain(self, state: P) -> dict[str, Any]:
        """What `load` reads, to be written by orjson."""
        return {"version": self.version} | {name: getattr(state, name) for name in self._names}

    def load(self, plain: object) -> P:
        """The state, from what any version up to this one wrote and JSON gave back; ValueError for anything else."""
        version = plain.get("version", 1) if isinstance(plain, dict) else 1
        if type(version) is not int or not 1 <= version <= self.version:
            raise ValueError(f"a state of version 1 to {self.version} expected; got {version!r}"[:100])
        try:
            for migrate in self._migrations[version - 1 :]:
                plain = migrate(plain)
            return self._adapter.validate_json(orjson.dumps(plain))
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"a state of version {version} expected; got another shape") from error


class Part(Protocol):
    """A part of the process with a state."""

    codec: StateCodec[Any]

    def state(self) -> Persisted:
        """What is to be kept at this moment."""
        ...

    def resume(self, state: Any) -> None:
        """Goes on from the state of an earlier process."""
        ...
