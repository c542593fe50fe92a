"""Settings of who may reach a listener: an address, TLS, tokens."""

import ssl
from typing import Annotated

from pydantic import Field

from tracescore.config.types import Address, Secret, Section, host_port, is_loopback
from tracescore.errors import UsageError

SHORTEST_TOKEN = 16
"""Least characters of a token that machines send: too long to guess, so tracescore need not lock anyone out."""

KnownName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9@._-]{0,63}$")]
"""The name of a client or user in logs and labels."""


class TlsConfig(Section):
    """PEM files; tracescore reads them again when they change."""

    cert: str = Field(min_length=1)
    """File with the certificate of the listener, followed by any intermediate certificates."""
    key: str = Field(min_length=1)
    """File with the private key, without a password."""
    client_ca: str | None = Field(default=None, min_length=1)
    """File with the authorities that sign client certificates (mTLS); with it every client needs a certificate."""

    def context(self, what: str) -> ssl.SSLContext:
        """The TLS context of a listener; it demands client certificates if `client_ca` is set.

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
    """An empty password, so that OpenSSL does not ask for one on the terminal."""
    return ""


class Token(Secret):
    """A token that machines send. While you rotate it, the file holds the old and the new one, a line each."""

    def read(self, what: str) -> str:
        """Read it like any secret; UsageError also when a token is too short."""
        value = super().read(what)
        if any(len(each) < SHORTEST_TOKEN for each in value.split()):
            raise UsageError(f"{what}: at least {SHORTEST_TOKEN} characters expected, such as `openssl rand -hex 16`")
        return value


class ListenerConfig(Section):
    """An address to listen on, and the clients that may connect."""

    listen: Address
    """Host and port; port 0 takes any free one. A host other than loopback lets other machines in."""
    tls: TlsConfig | None = None
    tokens: dict[KnownName, Token] = Field(default_factory=dict)
    """Tokens that clients send as `Authorization: Bearer TOKEN`, by the name of the client."""
    insecure: bool = False
    """Allow other machines in without a token or certificate."""

    @property
    def exposed(self) -> bool:
        """Whether other machines can reach it without a token or certificate."""
        certified = self.tls is not None and self.tls.client_ca is not None
        return not (self.tokens or certified or is_loopback(host_port(self.listen)[0]))
