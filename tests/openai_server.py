"""A real HTTP server that speaks the OpenAI API, with replies that a test scripts, in a thread of its own.

    with openai_server() as server:
        server.queue(Reply(status=429, headers={"Retry-After": "0"}), Reply.json({"verdicts": []}))
        ...  # settings with base_url=server.url
        assert [request.operation for request in server.requests] == [...]

Without a script every operation gets a sensible answer: `sensible` compares words.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from tracescore.judge.operations import Vocabulary
from tracescore.judge.prompt import frame, prompts_of

MODEL = "judge-2026-11-30"
"""The model that replies say they are from, whatever was asked for."""


@dataclass(frozen=True)
class Request:
    """What the server was sent."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The decoded body."""
        return json.loads(self.raw)

    @property
    def prompt(self) -> str:
        """The name of the prompt whose instructions were sent; "" for embeddings."""
        messages = self.body.get("messages", [])
        shown = messages[0]["content"] if messages else ""
        return next((name for name, marks in _MARKS.items() if any(mark in shown for mark in marks)), "")

    @property
    def data(self) -> dict[str, Any]:
        """The JSON between the markers of the user message."""
        return json.loads(self.body["messages"][-1]["content"].split("\n")[-2])

    @property
    def is_probe(self) -> bool:
        """Whether it is the question with the known answer."""
        return self.prompt == "verify_support" and any("locker" in row["text"] for row in self.data["statements"])


@dataclass(frozen=True)
class Reply:
    """What the server answers. `raw` replaces the whole body, `vectors` are for embeddings."""

    content: str | None = "{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish: str = "stop"
    refusal: str | None = None
    model: str | None = MODEL
    usage: Mapping[str, int] | None = field(default_factory=lambda: {"prompt_tokens": 1000, "completion_tokens": 50})
    raw: bytes | None = None
    delay: float = 0.0
    disconnect: bool = False

    @classmethod
    def json(cls, value: Any, **fields: Any) -> Reply:
        """A reply whose content is `value` as JSON."""
        return cls(content=json.dumps(value, ensure_ascii=False), **fields)

    @classmethod
    def error(cls, status: int, code: str = "", message: str = "", param: str = "", **fields: Any) -> Reply:
        """An error in the form that OpenAI gives it."""
        body = {"error": {"message": message, "type": code, "code": code, "param": param or None}}
        return cls(status=status, raw=json.dumps(body).encode(), **fields)

    def payload(self) -> bytes:
        """The body as it goes over the wire."""
        if self.raw is not None:
            return self.raw
        message = {"role": "assistant", "content": self.content, "refusal": self.refusal}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": self.model, "usage": self.usage}
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        return json.dumps({**body, "choices": [choice]}).encode()


_MARKS = {name: (prompt.instructions, frame(name)) for name, prompt in prompts_of("v1").by_name.items()}
"""What tells a prompt: all of version 1; of the others, what follows the rules."""

Script = Callable[[Request], Reply]


class OpenAIServer:
    """The running server. `script` answers what `queue` does not; both may be changed at any time."""

    def __init__(self, script: Script) -> None:
        self.url = ""
        self.script = script
        self.requests: list[Request] = []
        self.refuse_texts: tuple[int, Reply] | None = None
        """How many texts a request for embeddings may hold, and what is said of more."""
        self.base64 = False
        """Whether vectors are sent as some servers do whatever they are asked for."""
        self.vectors: dict[str, list[float]] = {}
        self.width = 256
        """Numbers of a vector; another width is another embedder behind the same name."""
        self.received = threading.Event()
        """Set once any request has come."""
        self.in_flight = 0
        self.most_in_flight = 0
        self._queue: deque[Reply] = deque()

    def queue(self, *replies: Reply) -> None:
        """Answers the next requests, in this order, before the script is asked."""
        self._queue.extend(replies)

    @property
    def settings(self) -> str:
        """The sections of a configuration with this server as judge and embedder, without retries."""
        return (
            f"judge: {{kind: openai, model: m, base_url: '{self.url}', max_retries: 0}}\n"
            f"embedder: {{kind: openai, model: e, base_url: '{self.url}'}}\n"
        )

    @property
    def prompts(self) -> list[str]:
        """The prompts that were asked, in order, without probes and embeddings."""
        return [request.prompt for request in self.requests if request.prompt and not request.is_probe]

    def sent(self, prompt: str) -> list[Request]:
        """The requests with this prompt, without probes."""
        return [request for request in self.requests if request.prompt == prompt and not request.is_probe]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serves one request."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            received = Request(request.path_qs, dict(request.headers), await request.read())
            self.requests.append(received)
            self.received.set()
            queued = self._queue.popleft() if self._queue else None
            if queued is None and received.path.partition("?")[0].endswith("/embeddings"):
                queued = self._too_many(received.body["input"])
                if queued is None:
                    return web.json_response(self._embeddings(received.body["input"]))
            reply = queued or self.script(received)
            await asyncio.sleep(reply.delay)
            if reply.disconnect:
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            headers = {"Content-Type": "application/json", **reply.headers}
            return web.Response(status=reply.status, body=reply.payload(), headers=headers)
        finally:
            self.in_flight -= 1

    def _too_many(self, texts: list[str]) -> Reply | None:
        return self.refuse_texts[1] if self.refuse_texts and len(texts) > self.refuse_texts[0] else None

    def _embeddings(self, texts: list[str]) -> dict[str, Any]:
        rows: list[dict[str, Any]] = [
            {"index": at, "embedding": self.vectors.get(text) or bag(text, self.width)} for at, text in enumerate(texts)
        ]
        if self.base64:
            for row in rows:
                packed = struct.pack(f"<{len(row['embedding'])}f", *row["embedding"])
                row["embedding"] = base64.b64encode(packed).decode()
        return {"object": "list", "model": "embed", "data": rows[::-1], "usage": {"prompt_tokens": 1}}


@contextmanager
def openai_server(script: Script | None = None) -> Iterator[OpenAIServer]:
    """Runs the server on a free port of loopback while the block runs."""
    server = OpenAIServer(script or sensible)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/{before:.*}/chat/completions", server.handle)
        app.router.add_post("/{before:.*}/embeddings", server.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, stop = started.result(timeout=10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


# ---------------------------------------------------------------- sensible answers

_COMMON = frozenset(
    "a an and are as at be by can do does for from how i in is it its of on or so that the this to was we what "  # noqa: SIM905
    "when where which who will with you your".split()
)
_END = re.compile(r"(?<=[.!?\u3002\uff1f])\s*")


def words(text: str) -> set[str]:
    """The words of a text that carry meaning, without endings."""
    return {re.sub(r"(s|ed|ing)$", "", w) or w for w in re.findall(r"\w+", text.casefold()) if w not in _COMMON}


def bag(text: str, size: int = 256) -> list[float]:
    """A vector of the words of a text: the cosine of two texts is about the share of words they have in common."""
    vector = [0.0] * size
    for word in words(text) or {text}:
        vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % size] += 1.0
    return vector


def sensible(request: Request) -> Reply:
    """What a judge that compares words would say to any of the operations."""
    return Reply.json(_SENSIBLE[request.prompt.partition("_")[0]](request))


def by(model: str) -> Script:
    """`sensible`, as said by another model."""
    return lambda request: replace(sensible(request), model=model)


def _questions(request: Request) -> dict[str, Any]:
    answer, count = request.data["answer"], request.data["count"]
    evasive = re.search(r"(?i)i (don't|do not) know|cannot help|no information", answer)
    if evasive:
        return {"words": evasive[0], "noncommittal": True, "questions": []}
    return {"words": "", "noncommittal": False, "questions": [f"{answer} ({n})?" for n in range(count)]}


def _parts(request: Request) -> dict[str, Any]:
    question, history = request.data["question"], request.data["history"]
    asked = [part.strip(" ?,") for part in re.split(r"\band\b|\?", question) if part.strip(" ?,")]
    earlier = " ".join(turn["text"] for turn in history if turn["role"] == "user")
    return {"standalone": f"{question} {earlier}".strip(), "parts": asked}


def _claims(request: Request) -> dict[str, Any]:
    only = request.data.get("only", [row["id"] for row in request.data["sentences"]])
    rows = [row for row in request.data["sentences"] if row["id"] in only]
    return {"claims": [{"from": row["id"], "text": row["text"]} for row in rows], "without": []}


def _useful(request: Request) -> dict[str, Any]:
    wanted = words(request.data["reference"] or request.data["question"])
    rows = []
    for row in request.data["passages"]:
        best = max(_END.split(row["text"]), key=lambda sentence: len(wanted & words(sentence)))
        useful = len(wanted & words(best)) >= 0.3 * len(wanted)
        verdict = "useful" if useful else "not_useful"
        rows.append({"id": row["id"], "quote": best if useful else "", "verdict": verdict})
    return {"verdicts": rows}


def _verdicts(request: Request) -> dict[str, Any]:
    if request.prompt == "verify_usefulness":
        return _useful(request)
    vocabulary = Vocabulary[request.prompt.removeprefix("verify_").upper()]
    sentences = [s for text in request.data["evidence"] for s in _END.split(text) if s.strip()]
    rows = [_verdict(row, sentences, vocabulary) for row in request.data["statements"]]
    return {"verdicts": rows}


def _verdict(row: Mapping[str, str], sentences: list[str], vocabulary: Vocabulary) -> dict[str, str]:
    wanted = words(row["text"])
    best = max(sentences, key=lambda sentence: len(wanted & words(sentence)))
    share = len(wanted & words(best)) / max(1, len(wanted))
    good, last = vocabulary.value[0], vocabulary.value[-1]
    full = 0.3 if vocabulary is Vocabulary.COVERAGE else 1.0
    if share >= full:
        return {"id": row["id"], "quote": best, "verdict": good}
    between = vocabulary is Vocabulary.SUPPORT and share >= 0.7
    return {"id": row["id"], "quote": best if between else "", "verdict": "contradicted" if between else last}


_SENSIBLE: Mapping[str, Callable[[Request], dict[str, Any]]] = {
    "reverse": _questions,
    "required": _parts,
    "claims": _claims,
    "verify": _verdicts,
}
