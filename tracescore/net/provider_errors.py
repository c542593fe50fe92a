"""What an endpoint of the OpenAI kind means by an error, in whatever form it puts it.

Bodies come as `{"error": {...}}`, as `{"error": "text"}`, in a list, as `{"detail": [{"loc": ..., "msg": ...}]}`, or
flat; what they say stands in a code, in prose, or in the words of another provider that a gateway quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tracescore.net.retry import is_transient, retry_after

Cause = Literal["unreachable", "timeout", "rate_limited", "quota", "unfit", "rejected", "too_long", "refused"]
"""Why a call failed: no answer, too slow, 429, no money left, key or model unknown, parameters not understood,
more tokens than the model reads, and refused by a content filter."""

_MOST = 4_000
"""Characters of an error that are searched."""
_CODE = re.compile(r"[\w.-]{1,60}")
_TOO_LONG = re.compile(
    r"context.{0,12}(length|window|size)|(prompt|input|request)s?\b.{0,40}too (long|large)|too many (input )?tokens"
    r"|reduce the length|input token count.{0,40}exceeds|tokens.{0,60}must be <=|max_model_len"
)
_LIMIT = re.compile(r"limit:? (\d+).{0,20}requested:? (\d+)")
_NO_MONEY = re.compile(
    r"insufficient[_ ](quota|balance|credits?|funds)|credit balance|out of credits|billing_hard|payment required"
)
_NO_KEY = re.compile(
    r"api[_ ]?key.{0,30}(not valid|invalid|incorrect|missing|expired)|(invalid|incorrect)[_ ]api[_ ]?key"
)
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|(invalid|unknown) model"
    r"|(model|deployment)\b.{0,80}(does not exist|not found|not exist|unknown)"
)
_FILTERED = re.compile(
    r"content_filter|content_policy|content management policy|responsibleaipolicy|data_inspection_failed"
)
_WAIT = re.compile(
    r"(?:try again|retry|wait)[^\d.]{0,30}(?=\d)(?:(\d+)\s?m(?!s)(?:in(?:ute)?s?)?\s?)?(?:(\d+(?:\.\d+)?)\s?(ms|s))?"
)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class ProviderError:
    """`code` names the error if it has a name, `said` is all it says in small letters, `wait` the seconds it asks for.

    `said` may repeat the request or parts of the key: it is searched for words, never shown.
    """

    code: str
    said: str
    wait: float | None

    def cause(self, status: int) -> tuple[Cause, str]:
        """What an error of this HTTP status is, and what to do about it; `{section}` stands for the settings."""
        said = f"{self.code} {self.said}"
        for cause, advice, known in (
            ("quota", "the account has no credit left", status == 402 or _NO_MONEY.search(said)),
            ("refused", "refused by a content filter", status in {400, 403, 422} and _FILTERED.search(said)),
            ("too_long", "longer than the model reads", self._never_fits(status, said)),
            ("rate_limited", "too many requests or tokens", status == 429),
            # 409: a lock that is held, as the SDK has it
            ("unreachable", "the server has a problem", status == 409 or is_transient(status)),
            ("unfit", "access denied; check {section}.api_key", status in {401, 403} or _NO_KEY.search(said)),
            (
                "unfit",
                "not found; check {section}.base_url and .model",
                _is_elsewhere(status) or _NO_MODEL.search(said),
            ),
        ):
            if known:
                return cause, advice  # type: ignore[return-value]
        return "rejected", "request not understood"

    def _never_fits(self, status: int, said: str) -> bool:
        if status in {429, 503}:
            limit = _LIMIT.search(said)
            return limit is not None and int(limit[2]) > int(limit[1])
        return status == 413 or _TOO_LONG.search(said) is not None


def _is_elsewhere(status: int) -> bool:
    return status in {404, 405} or 300 <= status < 400


def provider_error(payload: object, headers: Mapping[str, str]) -> ProviderError:
    """The error that a body of any form holds."""
    body = _body(payload)
    code = next(
        (str(body[key]) for key in ("code", "type", "status", "error_type") if isinstance(body.get(key), str)), ""
    )
    said = " ".join(_texts(payload))[:_MOST].casefold()
    waits = (retry_after(headers), _delay(payload), _told(said), _reset(headers))
    return ProviderError(code if _CODE.fullmatch(code) else "", said, next((w for w in waits if w is not None), None))


def _body(payload: object) -> Mapping[str, Any]:
    """The object that describes the error."""
    if isinstance(payload, list):
        payload = payload[0] if payload else None
    if not isinstance(payload, dict):
        return {}
    inner = payload.get("error") or payload.get("errors") or payload.get("detail")
    return _body(inner) or payload


def _texts(value: object, depth: int = 6) -> Iterator[str]:
    """All texts of a body, the names of its fields excluded."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and depth:
        for item in list(value.values() if isinstance(value, dict) else value)[:50]:
            yield from _texts(item, depth - 1)


def _delay(payload: object) -> float | None:
    """`retryDelay` of google.rpc.RetryInfo, or the `estimated_time` that a model takes to load."""
    body = _body(payload)
    details = body.get("details")
    for detail in details if isinstance(details, list) else []:
        given = _DELAY.fullmatch(str(detail.get("retryDelay"))) if isinstance(detail, dict) else None
        if given:
            return float(given[1])
    loading = body.get("estimated_time")
    return float(loading) if isinstance(loading, int | float) and 0 < loading < 3600 else None


def _told(said: str) -> float | None:
    """Seconds in prose: try again in 1m30.5s, retry after 20 seconds, in 350ms."""
    for match in _WAIT.finditer(said):
        minutes, number, unit = match.groups()
        if minutes or number:
            return 60.0 * float(minutes or 0) + float(number or 0) * (0.001 if unit == "ms" else 1.0)
    return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until more is left of what is used up, by OpenAI's headers x-ratelimit-{remaining,reset}-*."""
    used_up = [kind for kind in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{kind}") == "0"]
    waits = [_told(f"wait {headers.get(f'x-ratelimit-reset-{kind}', '')}") for kind in used_up]
    return max((wait for wait in waits if wait is not None), default=None)
