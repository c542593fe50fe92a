"""An app as gold targets meet it: a real HTTP server in a thread, which answers what a test tells it to."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.http_serving import QuietHandler, http_serving


@dataclass(frozen=True)
class Answer:
    """A response; a `body` that is no bytes goes out as JSON."""

    body: Any = None
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass(frozen=True)
class Asked:
    """What came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class AppServer:
    """The running app: `queue` answers first, then `otherwise`."""

    def __init__(self) -> None:
        self.url = ""
        self.queue: deque[Answer] = deque()
        self.otherwise = Answer({"answer": "30 days."})
        self.asked: list[Asked] = []


@contextmanager
def app_server() -> Iterator[AppServer]:
    """The app on a free port."""
    app = AppServer()

    class Handler(QuietHandler):
        def _respond(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            app.asked.append(Asked(self.command, self.path, headers, json.loads(sent) if sent else None))
            answer = app.queue.popleft() if app.queue else app.otherwise
            time.sleep(answer.delay)
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"content-type": answer.content_type, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = _respond  # noqa: N815 - http.server's names

    with http_serving(Handler) as app.url:
        yield app
