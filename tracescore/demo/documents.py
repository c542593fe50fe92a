"""What the sample app knows: an invented shop's help centre, an invented firm's handbook, an invented bank's rates."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Document:
    """One page of a knowledge base."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class DemoService:
    """One of the sample services: its releases, its route and what it knows."""

    name: str
    releases: tuple[str, ...]
    route: str
    documents: tuple[Document, ...]


SERVICES = TypeAdapter(Mapping[str, DemoService]).validate_python(
    yaml.safe_load(Path(__file__).with_name("services.yaml").read_text(encoding="utf-8"))
)
