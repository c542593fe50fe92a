"""An OTLP/HTTP receiver on loopback that keeps the bodies of traces and logs in order of arrival, decompressed."""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Body:
    """One export request: `kind` is traces or logs, `form` pb or json."""

    kind: str
    form: str
    data: bytes


class Sink(ThreadingHTTPServer):
    """Takes POST on any path that ends in traces, logs or metrics; `bodies` holds the first two."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[Body] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Sink
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        data = self._body()
        if self.headers.get("Content-Encoding"):
            data = zlib.decompress(data, wbits=47)  # gzip or zlib, by its header
        kind = self.path.split("?")[0].rstrip("/").rsplit("/", 1)[-1]
        json = "json" in (self.headers.get("Content-Type") or "")
        if kind in {"traces", "logs"} and data:
            with self.server.lock:
                self.server.bodies.append(Body(kind, "json" if json else "pb", data))
        reply = b"{}" if json else b""
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if json else "application/x-protobuf")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def _body(self) -> bytes:
        if "chunked" not in (self.headers.get("Transfer-Encoding") or "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)
