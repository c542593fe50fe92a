"""A real HTTP server on a free port, for whatever answers in a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    """To derive from."""

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Of a client that did not wait for a late answer."""


@contextmanager
def http_serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The base URL of the server, while the block runs."""
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
