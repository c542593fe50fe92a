"""Settings of the gold set: which questions, asked of whom, and when."""

import re
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, JsonValue

from tracescore.config.types import Duration, Ratio, Secret, Section, Url

DEFAULT_BODY: dict[str, JsonValue] = {"question": "{question}"}
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_STEP = re.compile(r"[^.\s]+")


def _cron(value: str) -> str:
    wrong = "a cron expression expected, such as 0 3 * * * (daily at 3)"
    if len(value.split()) != 5:  # CronSim takes a sixth, for seconds
        raise ValueError(f"{wrong}: five fields expected")
    try:
        CronSim(value, datetime.now(UTC))
    except CronSimError as error:
        raise ValueError(f"{wrong}: {error}") from None
    return value


def zone_of(name: str) -> tzinfo:
    """The time zone of that name; UTC also where there is no database of them. KeyError, ValueError, OSError: none."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _zone(value: str) -> str:
    try:
        zone_of(value)
    except (KeyError, ValueError, OSError):  # no such name, a path outside the database, a folder of it
        raise ValueError("the name of a time zone expected, such as Europe/Berlin") from None
    return value


def _path(value: str) -> str:
    if not all(map(_STEP.fullmatch, value.split("."))):
        raise ValueError("a path into the JSON expected, such as choices.0.message.content")
    return value


def _function(value: str) -> str:
    if _FUNCTION.fullmatch(value) is None:
        raise ValueError("module:function expected, such as shop.rag:answer")
    return value


FunctionName = Annotated[str, AfterValidator(_function)]
Cron = Annotated[str, AfterValidator(_cron)]
"""Minute, hour, day of the month, month, day of the week."""
Zone = Annotated[str, AfterValidator(_zone)]
ResponsePath = Annotated[str, AfterValidator(_path)]
"""Keys and list positions, joined by dots; `*` stands for every position of a list."""


class _Request(Section):
    """How an app is asked over HTTP. `{question}`, `{history}` and `{contexts}` are filled in from the item."""

    url: Url
    method: Literal["GET", "POST", "PUT"] = "POST"
    headers: dict[str, Secret] = Field(default_factory=dict)
    body: dict[str, JsonValue] | list[JsonValue] | None = None
    """Sent as JSON; without it `{"question": "{question}"}`, and nothing with GET."""


class HttpTargetConfig(_Request):
    """An app that answers a request with JSON."""

    kind: Literal["http"]
    answer: ResponsePath = "answer"
    contexts: ResponsePath | None = None
    """Of a text, a list of texts, or, by *, of the texts inside a list of objects."""
    release: ResponsePath | None = None
    """Where the app says which release of it answered."""


class OpenAITargetConfig(Section):
    """An app, or a bare model, behind an OpenAI-compatible chat endpoint."""

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: Url
    api_key: Secret | None = None
    headers: dict[str, Secret] = Field(default_factory=dict)
    instructions: str | None = None
    """A system message before history and question."""
    contexts: ResponsePath | None = None


class PythonTargetConfig(Section):
    """A function of yours, plain or async: question in, answer text or {answer, contexts, release} out."""

    kind: Literal["python"]
    callable: FunctionName


class TraceTargetConfig(_Request):
    """An instrumented app: what it answers to the request is read from the trace that it then exports."""

    kind: Literal["trace"]
    wait: Duration = 60.0
    """For the trace, once the app has answered."""


GoldTargetConfig = Annotated[
    HttpTargetConfig | OpenAITargetConfig | PythonTargetConfig | TraceTargetConfig, Field(discriminator="kind")
]


class GoldConfig(Section):
    """Correctness on a schedule: questions with known answers, asked of the app again and again."""

    set: str = Field(min_length=1)
    """A file of YAML, JSONL or CSV."""
    name: str | None = Field(default=None, min_length=1, max_length=64)
    """The label `gold_set`; without it the name of the file."""
    target: GoldTargetConfig
    service: str | None = Field(default=None, min_length=1)
    """The service.name of the app in its own traces: labels the series, and a new release of it starts a run."""
    release: str | None = Field(default=None, min_length=1)
    """The release that answers, where neither the target nor live traces tell."""
    schedule: Cron | None = "0 3 * * *"
    timezone: Zone = "UTC"
    on_release: bool = True
    """Whether the first live trace of a new release of `service` starts a run."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Questions asked side by side."""
    timeout: Duration = 60.0
    """For one answer."""
    retries: int = Field(default=2, ge=0, le=10)
    """After no answer, HTTP 429 or 5xx."""
    min_scored: Ratio = 0.8
    """Share of the items that must be scored in a measure for it to be published."""
    tolerance: float = Field(default=0.02, ge=0, le=1)
    """A fall of a mean that is still no news."""
    keep: Duration = 90 * 86400.0
    """How long runs are kept, and releases shown."""
    store: str | None = Field(default=None, min_length=1)
    """A file for the results; without it `.gold` beside spool.path, or memory where that is not set either."""
