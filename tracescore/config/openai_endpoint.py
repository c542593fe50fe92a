"""Settings of whatever speaks the OpenAI API: where it is asked, with which headers, and how patiently."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from tracescore.config.types import Duration, Secret, Section, Url

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET = re.compile(r"authorization|key|token|secret|cookie", re.IGNORECASE)
_OURS = {"content-type", "content-length", "host", "user-agent", "transfer-encoding"}


def _text_or_secret(value: object) -> object:
    """A mapping is the name of a secret; pydantic would try both kinds and report both."""
    if isinstance(value, dict):
        return Secret.model_validate(value)
    if not isinstance(value, str | Secret) or (isinstance(value, str) and not value.isprintable()):
        raise ValueError("a text of one line expected, or a secret as {env: NAME} or {file: PATH}")
    return value


def _query(value: dict[str, str]) -> dict[str, str]:
    secret = next((name for name in value if _SECRET.search(name)), None)
    if secret is not None:  # addresses are logged on the way, by others than us
        raise ValueError(
            f"{secret}: a key does not belong in an address (its value is not shown); use api_key or headers"
        )
    return value


def _headers(value: dict[str, Any]) -> dict[str, Any]:
    for name, given in value.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OURS:
            raise ValueError(f"{name!r} cannot be set as a header")
        if isinstance(given, str) and _SECRET.search(name):
            raise ValueError(
                f"{name}: a secret is named, as {{env: NAME}} or {{file: PATH}}; got the value itself (not shown)"
            )
    return value


TextOrSecret = Annotated[str | Secret, BeforeValidator(_text_or_secret)]
"""A text as it stands, or a secret by its name."""


class OpenAIEndpointConfig(Section):
    """What judge and embedder have in common where they are asked over the network."""

    model: str = Field(min_length=1)
    """The model, as the endpoint calls it."""
    base_url: Url = "https://api.openai.com/v1"
    """Where the API is. A query (`?api-version=...`) goes along with every request."""
    api_key: Secret | None = None
    """The key, sent as `Authorization: Bearer`."""
    headers: Annotated[dict[str, TextOrSecret], AfterValidator(_headers)] = Field(default_factory=dict)
    """Further headers of every request; name those that hold secrets."""
    query: Annotated[dict[str, str], AfterValidator(_query)] = Field(default_factory=dict)
    """Added to the address of every request."""
    timeout: Duration = 60.0
    """Time for one request."""
    max_concurrency: int = Field(default=16, ge=1)
    """Requests at the same time."""
    max_retries: int = Field(default=4, ge=0)
    """Further attempts after HTTP 429, 5xx or no answer."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Sent with every request as they are: `seed`, `reasoning_effort`, `chat_template_kwargs`. Those under `extra_body`
    go along beside the others, as in the OpenAI library."""

    @property
    def body(self) -> dict[str, Any]:
        """The parameters as they stand in a request."""
        beside = self.parameters.get("extra_body")
        plain: dict[str, Any] = {name: value for name, value in self.parameters.items() if name != "extra_body"}
        return plain | (beside if isinstance(beside, dict) else {})

    def url(self, path: str) -> str:
        """The address that requests for `path` go to."""
        parts = urlsplit(self.base_url)
        query = parse_qsl(parts.query, keep_blank_values=True) + list(self.query.items())
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, urlencode(query), ""))

    def sent_headers(self, section: str) -> dict[str, str]:
        """The headers that carry keys, and those of the user. UsageError when a secret is not there."""
        key = {"Authorization": f"Bearer {self.api_key.read(f'{section}.api_key')}"} if self.api_key else {}
        given = {
            name: value.read(f"{section}.headers.{name}") if isinstance(value, Secret) else value
            for name, value in self.headers.items()
        }
        return given if any(name.lower() == "authorization" for name in given) else key | given

    @property
    def where(self) -> str:
        """Where it is asked; credentials and the query, which may be one, are not shown."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
