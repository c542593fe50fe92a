"""Settings of who may reach a listener: an address, TLS, tokens."""

import ssl
from typing import Annotated

from pydantic import Field

from tracescore.config.types import Address, Secret, Section, host_port, is_loopback
from tracescore.errors import UsageError

SHORTEST_TOKEN = 16
"""Characters of a token that machines send: nobody guesses one, so nobody has to be locked out."""

KnownName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9@._-]{0,63}$")]
"""What is said of somebody in logs and labels."""


class TlsConfig(Section):
    """Files in PEM; they are read again when they change."""

    cert: str = Field(min_length=1)
    """File with the certificate of the listener, and behind it those between it and its authority."""
    key: str = Field(min_length=1)
    """File with its key, without a password."""
    client_ca: str | None = Field(default=None, min_length=1)
    """File with authorities of clients; with it nobody gets in without a certificate of theirs."""

    def context(self, what: str) -> ssl.SSLContext:
        """What a listener offers; clients must have a certificate where `client_ca` is set.

        UsageError names `what` when a file cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_TICKET  # a session that goes on would not be held against a new client_ca
        context.num_tickets = 0
        try:
            context.load_cert_chain(self.cert, self.key, password=_no_password)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ValueError) as error:  # ssl's are of the former
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or "no PEM"
            files = ", ".join(filter(None, (self.cert, self.key, self.client_ca)))
            raise UsageError(f"{what}: {files} cannot be used: {str(why).replace('_', ' ').lower()}") from None
        return context


def _no_password() -> str:
    """What a key that has a password is opened with; without this the terminal would be asked."""
    return ""


class Token(Secret):
    """A token that machines send; several where they are changed, each on a line of its own."""

    def read(self, what: str) -> str:
        """As any secret; UsageError also when one of them could be guessed."""
        value = super().read(what)
        if any(len(each) < SHORTEST_TOKEN for each in value.split()):
            raise UsageError(f"{what}: at least {SHORTEST_TOKEN} characters expected, such as `openssl rand -hex 16`")
        return value


class ListenerConfig(Section):
    """An address to listen on, and who gets in."""

    listen: Address
    """Host and port; port 0 takes any free one. A host other than loopback lets other machines in."""
    tls: TlsConfig | None = None
    tokens: dict[KnownName, Token] = Field(default_factory=dict)
    """The tokens that let somebody in, as `Authorization: Bearer TOKEN`, by the name of who has them."""
    insecure: bool = False
    """Whether the listener may be open to other machines although nothing asks who they are."""

    @property
    def exposed(self) -> bool:
        """Whether other machines reach it, and nothing asks who they are."""
        certified = self.tls is not None and self.tls.client_ca is not None
        return not (self.tokens or certified or is_loopback(host_port(self.listen)[0]))
