"""Settings of the page with the evidence behind the scores."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.access import KnownName, TlsConfig
from tracescore.config.links import LinkName, LinkTemplate
from tracescore.config.types import Address, Duration, HeaderName, Secret, Section

UserRole = Literal["reader", "labeller", "operator"]
"""Each role may also do what the roles before it may."""


class UserConfig(Section):
    """A person who may open the page."""

    name: KnownName
    """The name in the audit log; with `trust_header`, the name that the proxy sends."""
    role: UserRole = "reader"
    """`reader` reads, `labeller` also labels answers, `operator` also resets, pins and erases."""
    token: Secret | None = None
    """The token this person logs in with; required unless `trust_header` is set."""


class WebConfig(Section):
    """The page with the evidence behind the scores. It shows your users' texts."""

    listen: Address = "127.0.0.1:9465"
    """Host and port of the page."""
    tls: TlsConfig | None = None
    token: Secret | None = None
    """The token an operator logs in with. Off loopback, the page needs this, `users` or `tls.client_ca`."""
    users: tuple[UserConfig, ...] = Field(default=(), strict=False)
    """Who may open the page."""
    session: Duration = Field(default=12 * 3600.0, ge=60.0)
    """How long a login lasts."""
    trust_header: HeaderName | None = None
    """The header in which a proxy in front names the visitor; a visitor who is not among `users` is a reader."""
    insecure: bool = False
    """Allow other machines in without a login."""
    keep: int = Field(default=1_000, ge=1)
    """How many of the latest interactions the page keeps."""
    trace_links: dict[LinkName, LinkTemplate] = Field(default_factory=dict)
    """Where else a trace can be opened: a name and the URL with `{trace_id}`, `{span_id}`, and `{start}` and `{end}`,
    which are in milliseconds and leave half an hour on either side."""

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [user.name for user in self.users]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"users: every name once; got {twice} twice")
        return self
