"""TLS of our listeners: certificates are read again when their files change, without a restart.

uvicorn's listener keeps one context, which every handshake leaves for the one of the moment: certificates and the
authorities of clients are those of the context that is current when the client speaks.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from tracescore.config import Config, TlsConfig
from tracescore.errors import UsageError

_log = logging.getLogger("tracescore.net")

_Signature = tuple[tuple[int, int, int], ...]


class ServerTls:
    """What a listener offers. UsageError when the files cannot be used at the start.

    Files that cannot be used later leave what was there in force, and are logged. With `optional`, clients may have a
    certificate and the app asks for it where it needs one.
    """

    def __init__(self, settings: TlsConfig, setting: str, *, optional: bool = False) -> None:
        self._settings, self._setting, self._optional = settings, setting, optional
        self._files = [settings.cert, settings.key, *filter(None, (settings.client_ca,))]
        self._seen = signature(self._files)
        self._current = self._context()

    @property
    def context(self) -> ssl.SSLContext:
        """For a listener: each handshake takes up what the files hold then."""
        offered = self._context()
        offered.sni_callback = self._choose
        return offered

    def grpc_credentials(self) -> Any:
        """The same for gRPC, which asks at every handshake."""
        first = self._grpc_configuration()
        fetch = self._fetch
        return grpc.dynamic_ssl_server_credentials(first, fetch, self._settings.client_ca is not None)

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        self._renew()
        connection.context = self._current

    def _fetch(self) -> Any:
        return self._grpc_configuration() if self._renew() else None

    def _renew(self) -> bool:
        """Reads the files if they have changed; whether there is something new."""
        now = signature(self._files)
        if now == self._seen:
            return False
        self._seen = now
        try:
            self._current = self._context()
        except UsageError as error:
            advice = "the former certificate stays in force; mend the files"
            _log.error('event=certificate_not_loaded detail="%s" advice="%s"', error, advice)
            return False
        _log.info("event=certificate_loaded setting=%s", self._setting)
        return True

    def _context(self) -> ssl.SSLContext:
        context = self._settings.context(self._setting)
        if self._optional and self._settings.client_ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _grpc_configuration(self) -> Any:
        cert, key, *authorities = (Path(file).read_bytes() for file in self._files)
        return grpc.ssl_server_certificate_configuration([(key, cert)], *authorities)


def signature(files: Sequence[str]) -> _Signature | None:
    """What changes when one of the files does; None when one is not there."""
    try:
        found = [Path(file).stat() for file in files]
    except OSError:
        return None
    return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)


def server_tls(settings: TlsConfig | None, setting: str, *, optional: bool = False) -> ServerTls | None:
    """None where a listener has no TLS."""
    return None if settings is None else ServerTls(settings, setting, optional=optional)


def inner_tls(config: Config) -> tuple[ServerTls | None, ServerTls | None]:
    """The TLS of the metrics, where the app itself asks for certificates since probes have none, and of the page."""
    metrics = server_tls(config.exporters.prometheus.tls, "exporters.prometheus.tls", optional=True)
    return metrics, server_tls(config.web.tls, "web.tls")
