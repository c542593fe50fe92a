"""What the sample app is asked, and its canned answers: for every question one of each kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import yaml
from pydantic import TypeAdapter

AnswerKind = Literal["good", "off_topic", "half", "unfaithful", "refused"]
"""What an answer was built to be. It goes into no telemetry: the scores have to find out by themselves."""
KINDS: tuple[AnswerKind, ...] = get_args(AnswerKind)

KIND_NAMES: Mapping[AnswerKind, str] = {
    "good": "good",
    "off_topic": "off-topic",
    "half": "half-answered",
    "unfaithful": "unfaithful",
    "refused": "refused",
}


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question of two parts to one of the services, the document that answers it, and an answer of each kind."""

    service: str
    document: str
    text: str
    answers: Mapping[AnswerKind, str]


QUESTIONS = TypeAdapter(tuple[DemoQuestion, ...]).validate_python(
    yaml.safe_load(Path(__file__).with_name("questions.yaml").read_text(encoding="utf-8"))
)
"""In order of services, so that any few in a row are of different ones."""
