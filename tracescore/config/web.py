"""Settings of the page with the evidence behind the scores."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.access import KnownName, TlsConfig
from tracescore.config.types import Address, Duration, HeaderName, Secret, Section

UserRole = Literal["reader", "labeller", "operator"]
"""Each may do what those before it may."""


class UserConfig(Section):
    """Somebody who may open the page."""

    name: KnownName
    """What the log says of what they change; with `trust_header` what the proxy calls them."""
    role: UserRole = "reader"
    """`reader` reads, `labeller` also labels answers, `operator` also resets, pins and erases."""
    token: Secret | None = None
    """What they log in with; needed unless a proxy names them."""


class WebConfig(Section):
    """The page with the evidence behind the scores. It shows your users' texts."""

    listen: Address = "127.0.0.1:9465"
    """Host and port of the page."""
    tls: TlsConfig | None = None
    token: Secret | None = None
    """What an operator logs in with. Unless it listens on loopback, the page needs this, `users`, or
    `tls.client_ca`."""
    users: tuple[UserConfig, ...] = Field(default=(), strict=False)
    """Who may open the page."""
    session: Duration = Field(default=12 * 3600.0, ge=60.0)
    """How long a login lasts."""
    trust_header: HeaderName | None = None
    """The header in which a proxy in front says who reads; somebody who is not among `users` is a reader."""
    insecure: bool = False
    """Whether the page may be open to other machines although nothing asks who they are."""
    keep: int = Field(default=1_000, ge=1)
    """Latest results that the page keeps."""

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [user.name for user in self.users]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"users: every name once; got {twice} twice")
        return self
