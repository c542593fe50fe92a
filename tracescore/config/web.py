"""Settings of the page with the evidence behind the scores."""

from typing import Literal

from pydantic import Field

from tracescore.config.access import KnownName, TlsConfig
from tracescore.config.types import Address, Duration, HeaderName, Secret, Section

Role = Literal["reader", "labeller", "operator"]
"""Reads; also labels answers; also resets and pins baselines. Each may do what those before it may."""


class UserConfig(Section):
    """Somebody who may open the page."""

    role: Role = "reader"
    token: Secret | None = None
    """What they log in with; None for those that only a proxy names."""


class WebConfig(Section):
    """The page with the evidence behind the scores. It shows your users' texts."""

    listen: Address = "127.0.0.1:9465"
    """Host and port of the page."""
    tls: TlsConfig | None = None
    token: Secret | None = None
    """What an operator logs in with. Unless it listens on loopback, the page needs this, `users`, or
    `tls.client_ca`."""
    users: dict[KnownName, UserConfig] | None = None
    """Who may open the page, by name."""
    session: Duration | None = Field(default=None, ge=60.0)
    """How long a login lasts; 12h without it."""
    trust_header: HeaderName | None = None
    """The header in which a proxy in front says who reads; somebody who is not among `users` is a reader."""
    insecure: bool | None = None
    """Whether the page may be open to other machines although nothing asks who they are."""
    keep: int = Field(default=1_000, ge=1)
    """Latest results that the page keeps."""
