"""Templates of links to a trace elsewhere, as `web.trace_links` has them."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

PLACEHOLDERS = ("trace_id", "span_id", "start", "end")
_HELD = re.compile(r"\{([^{}]*)\}")
_STARTS = re.compile(r"https?://", re.IGNORECASE)


def _template(value: str) -> str:
    """Only http and https, so that no template is a script; what is filled in comes after the host."""
    if not _STARTS.match(value) or not value.isprintable() or " " in value:
        raise ValueError("a URL that begins with http:// or https:// expected, such as http://jaeger/trace/{trace_id}")
    unknown = [name for name in _HELD.findall(value) if name not in PLACEHOLDERS]
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    if unknown:
        raise ValueError(f"{{{unknown[0][:40]}}} is none of {known}; write other braces as %7B and %7D")
    bare = _HELD.sub("", value)
    if "{" in bare or "}" in bare:
        raise ValueError(f"{known} expected between braces; write other braces as %7B and %7D")
    try:
        host = urlsplit(value).netloc
    except ValueError:
        host = ""
    if not host or "{" in host:
        raise ValueError("a URL with the name of its host expected; what is filled in stands after it")
    return value


LinkTemplate = Annotated[str, AfterValidator(_template)]
"""A URL that may hold {trace_id}, {span_id}, {start} and {end}."""
LinkName = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,40}$")]
