"""A scripted model server on loopback: the APIs of OpenAI (chat, responses, embeddings), Anthropic, Gemini and Ollama.

Only what the recipes' libraries ask of them. The words come from `script`, the vectors from the words' hashes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import apis
from .script import Refused


class Model(ThreadingHTTPServer):
    """Serves on a free port of 127.0.0.1; `asked` are the requests it got, `numbers` count its replies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, Any]] = []
        self.numbers = itertools.count(1)

    @property
    def url(self) -> str:
        """Where it listens; the OpenAI API is below /v1."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "gpt-4o-mini", "object": "model"}], "models": []})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        ask, path = json.loads(body or b"{}"), self.path.split("?")[0]
        self.server.asked.append((path, ask))
        if re.search("embed", path, re.IGNORECASE):
            return self._send(_embeddings(path, ask))
        api = next(api for suffix, api in apis.BY_PATH.items() if re.search(suffix, path))
        try:
            reply = api(ask, next(self.server.numbers), path)
        except Refused:
            error = {"message": "The model refuses this request.", "type": "invalid_request_error", "code": 400}
            return self._send({"type": "error", "error": error}, 400)
        if isinstance(reply, dict):
            return self._send(reply)
        return self._stream(reply, "application/x-ndjson" if "/api/" in path else "text/event-stream")

    def _stream(self, lines: Iterator[str], kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            part = line.encode()
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            self.wfile.flush()
            time.sleep(0.001)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, reply: Any, status: int = 200) -> None:
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _embeddings(path: str, ask: dict[str, Any]) -> dict[str, Any]:
    given = ask.get("input") or [part.get("content") for part in ask.get("requests", [])]
    texts = given if isinstance(given, list) else [given]
    vectors = [_vector(str(text)) for text in texts]
    if "/api/" in path:
        return {"model": ask.get("model"), "embeddings": vectors}
    data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    return {"object": "list", "model": ask.get("model"), "usage": {"prompt_tokens": 8, "total_tokens": 8}, "data": data}


def _vector(text: str, size: int = 24) -> list[float]:
    out = [0.0] * size
    for word in re.findall(r"\w+", text.lower()):
        out[hashlib.md5(word.encode()).digest()[0] % size] += 1
    length = math.sqrt(sum(x * x for x in out)) or 1.0
    return [round(x / length, 4) for x in out]
