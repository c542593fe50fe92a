"""The kinds of values that settings have, as they are written: durations, sizes, addresses, URLs and secrets."""

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

import re2
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from tracescore.errors import UsageError

_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|d)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 366 * 86400.0
"""Seconds of the longest duration: what is longer was meant otherwise."""
_SIZE = re.compile(r"(\d{1,12})(B|KiB|MiB|GiB)", re.ASCII)
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_HOST_PORT = re.compile(r"(?:\[(?P<inside>[^\[\]]+)\]|(?P<host>[^\s/@\[\]]*?))(?::(?P<port>\d{1,5}))?", re.ASCII)
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_URL = re.compile(r"https?://[^\s/]+")


def host_port(address: str, default: int | None = None) -> tuple[str, int]:
    """Host and port of HOST:PORT or [IPV6]:PORT; the host in lower case and without brackets.

    ValueError when there is no such port, or none at all and no `default` for it.
    """
    match = _HOST_PORT.fullmatch(address)
    port = int(match["port"]) if match and match["port"] else default
    if match is None or port is None or port > 65535:
        raise ValueError("an address HOST:PORT expected, such as 127.0.0.1:4317")
    return (match["inside"] or match["host"] or "").lower(), port


def is_loopback(host: str) -> bool:
    """Whether a host (without brackets) can only be reached from this machine; of names, `localhost` alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def target_of(url: str, usual: int) -> tuple[str, int]:
    """Host and port of a URL; where it names no port, 443 for https and else the usual one."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else usual)


def compiled(expression: str) -> Any:
    """An expression of RE2; ValueError says what is wrong with one."""
    options = re2.Options()
    options.log_errors = False  # they are raised
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        said = error.args[0]
        raise ValueError(f"not an RE2 expression: {said.decode() if isinstance(said, bytes) else said}") from None


def _expression(value: str) -> str:
    if compiled(value).search(""):
        raise ValueError("matches the empty text, so it would match everywhere")
    return value


def _duration(value: object) -> object:
    """`500ms`, `5s`, `1m`, `2h`, `7d` -> seconds. A bare number has no unit and is refused."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a duration with its unit expected, such as 500ms, 30s, 5m, 1h or 7d")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if not 0 < seconds <= _LONGEST:
        raise ValueError("a duration above 0 and of at most 366d expected")
    return seconds


def _size(value: object) -> object:
    """`64KiB`, `16MiB`, `1GiB` -> bytes."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a size with its unit expected, such as 512KiB, 16MiB or 1GiB")
    size = int(match[1]) * _BYTES[match[2]]
    if size == 0:
        raise ValueError("a size above 0 expected")
    return size


def _address(value: object) -> object:
    if not isinstance(value, str) or not host_port(value)[0]:
        raise ValueError("an address HOST:PORT expected, such as 127.0.0.1:4317")
    return value


def _url(value: str) -> str:
    try:
        url = urlsplit(value)
        reachable = _URL.match(value) is not None and bool(url.hostname) and url.port != 0
    except ValueError:  # urlsplit's, for a port or an IPv6 address that is none
        reachable = False
    if not reachable:
        raise ValueError("a URL such as http://127.0.0.1:4318 expected")
    from httpx2 import URL, InvalidURL  # noqa: PLC0415 - it takes as long as the rest of the configuration

    try:
        URL(value)
    except InvalidURL as error:  # a host that no name and no address can be
        raise ValueError(f"a URL that can be asked expected, such as http://127.0.0.1:4318: {error}") from None
    return value


def _function(value: str) -> str:
    if _FUNCTION.fullmatch(value) is None:
        raise ValueError("module:function expected, such as shop.rag:answer")
    return value


def _beside(value: str, info: ValidationInfo) -> str:
    return str((info.context or {}).get("folder", Path()) / value)


Expression = Annotated[str, AfterValidator(_expression)]
"""A regular expression of RE2 that does not match the empty text."""
Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds, above 0 and at most 366 days; written with a unit."""
Size = Annotated[int, BeforeValidator(_size)]
"""Bytes, above 0; written with a unit."""
Address = Annotated[str, BeforeValidator(_address)]
"""HOST:PORT; port 0 means any free one."""
FunctionName = Annotated[str, AfterValidator(_function)]
Url = Annotated[str, AfterValidator(_url)]
PathBesideFile = Annotated[str, Field(min_length=1), AfterValidator(_beside)]
"""A path; a relative one is meant from the folder of the configuration file."""
Ratio = Annotated[float, Field(gt=0, le=1)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Section(BaseModel):
    """What all sections share: unknown keys are errors, values are not coerced, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Secret(Section):
    """A secret by the name of an environment variable or of a file, never by value."""

    env: EnvironmentName | None = None
    file: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _not_by_value(cls, value: object) -> object:
        if isinstance(value, str):
            raise ValueError(  # noqa: TRY004 - pydantic collects these
                "a secret is named, as {env: NAME} or {file: PATH}; got the value itself (not shown)"
            )
        return value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("exactly one of env and file expected")
        return self

    def read(self, what: str) -> str:
        """The secret itself; UsageError when the variable or file is missing or empty."""
        if self.env is not None:
            value, source = os.environ.get(self.env, ""), f"environment variable {self.env}"
        else:
            path = Path(self.file or "")
            try:
                value, source = path.read_text(encoding="utf-8"), f"file {path}"
            except OSError as error:
                raise UsageError(f"{what}: file {path} cannot be read: {error.strerror}") from None
            except ValueError:  # no text, or a name that no file can have
                raise UsageError(f"{what}: file {self.file!r} is not UTF-8 text") from None
        if not value.strip():
            raise UsageError(f"{what}: {source} is not set or empty")
        return value.strip()
