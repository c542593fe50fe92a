"""Settings of the gold set: which questions tracescore asks, whom, and when."""

import re
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, JsonValue

from tracescore.config.types import Duration, FunctionName, Ratio, Secret, Section, Url

DEFAULT_BODY: dict[str, JsonValue] = {"question": "{question}"}
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


Cron = Annotated[str, AfterValidator(_cron)]
"""Minute, hour, day of the month, month, day of the week."""
Zone = Annotated[str, AfterValidator(_zone)]
ResponsePath = Annotated[str, AfterValidator(_path)]
"""Keys and list positions, joined by dots; `*` stands for every position of a list."""


class _Request(Section):
    """How an app is asked over HTTP. `{question}`, `{history}` and `{contexts}` are filled in from the item."""

    url: Url
    """Where your app answers; may hold `{question}`."""
    method: Literal["GET", "POST", "PUT"] = "POST"
    """HTTP method."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Headers of every request, by the names of their secrets."""
    body: dict[str, JsonValue] | list[JsonValue] | None = None
    """The request, as JSON. Without it `{"question": "{question}"}`, and nothing with GET."""


class HttpTargetConfig(_Request):
    """An app that answers a request with JSON."""

    kind: Literal["http"]
    """How tracescore asks."""
    answer: ResponsePath = "answer"
    """Where the answer is in the reply: keys and positions, joined by dots."""
    contexts: ResponsePath | None = None
    """Where the passages are: a text, a list of texts, or, with `*`, a text in every object of a list."""
    release: ResponsePath | None = None
    """Where the app says which release answered."""


class OpenAITargetConfig(Section):
    """An app, or a bare model, behind an OpenAI-compatible chat endpoint."""

    kind: Literal["openai"]
    """How tracescore asks."""
    model: str = Field(min_length=1)
    """The model, as the endpoint calls it."""
    base_url: Url
    """Where the API is."""
    api_key: Secret | None = None
    """The key, sent as `Authorization: Bearer`."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Headers of every request, by the names of their secrets."""
    instructions: str | None = None
    """A system message before history and question."""
    contexts: ResponsePath | None = None
    """Where the passages are in the reply, if it holds them."""


class PythonTargetConfig(Section):
    """A function of yours, plain or async. It gets the question and returns a text or `{answer, contexts, release}`."""

    kind: Literal["python"]
    """How tracescore asks."""
    callable: FunctionName
    """The function; tracescore also looks for the module in the folder it runs in."""


class TraceTargetConfig(_Request):
    """An instrumented app: tracescore reads its answer from the trace that it exports."""

    kind: Literal["trace"]
    """How tracescore asks."""
    wait: Duration = 60.0
    """How long tracescore waits for the trace once the app has answered."""


GoldTargetConfig = Annotated[
    HttpTargetConfig | OpenAITargetConfig | PythonTargetConfig | TraceTargetConfig, Field(discriminator="kind")
]


class GoldConfig(Section):
    """Questions with known answers that tracescore asks your app on a schedule. See [gold](gold.md)."""

    set: str = Field(min_length=1)
    """The file of questions and references: YAML, JSONL, JSON, CSV or Parquet."""
    name: str | None = Field(default=None, min_length=1, max_length=64)
    """The label `gold_set`; without it the name of the file."""
    target: GoldTargetConfig
    """How tracescore asks your app."""
    service: str | None = Field(default=None, min_length=1)
    """`service.name` of the app in its traces. It labels the series, and a new release of it starts a run."""
    release: str | None = Field(default=None, min_length=1)
    """The release that answers, where neither the reply nor live traces say."""
    schedule: Cron | None = "0 3 * * *"
    """When runs start; a run that a downtime missed starts with the process. `null`: no schedule."""
    timezone: Zone = "UTC"
    """The time zone of the schedule."""
    on_release: bool = True
    """Whether the first live trace of a new release of `service` starts a run."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Questions asked at the same time."""
    timeout: Duration = 60.0
    """Time for one answer."""
    retries: int = Field(default=2, ge=0, le=10)
    """Further attempts after HTTP 429, 5xx or no answer."""
    min_scored: Ratio = 0.8
    """The share of items that must have a score before tracescore publishes a measure."""
    tolerance: float = Field(default=0.02, ge=0, le=1)
    """The smallest drop of a mean that tracescore reports."""
    keep: Duration = 90 * 86400.0
    """How long tracescore keeps runs and shows releases."""
    store: str | None = Field(default=None, min_length=1)
    """A file for the results. Without it: `.gold` beside `spool.path`, or memory."""
