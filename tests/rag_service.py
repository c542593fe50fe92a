"""A RAG app behind a real HTTP server: it finds a passage, answers with its best sentence, and is instrumented.

Its second release brings a stale price list along: what it answers stands in its passages and is wrong. The third has
lost its price list, the fourth answers the first part of a question alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from opentelemetry import context
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tests.http_serving import QuietHandler, http_serving
from tests.sample_app import Asked, answer, provider
from tracescore.demo.app import retrieve
from tracescore.demo.documents import Document

PRICES = {
    "Aurora lamp": (49, 45),
    "Borealis desk": (320, 280),
    "Cirrus chair": (185, 159),
    "Delta shelf": (75, 69),
    "Ember heater": (130, 115),
    "Fjord sofa": (890, 820),
    "Grove planter": (24, 19),
    "Harbour rug": (210, 190),
    "Iris mirror": (95, 85),
    "Juniper bed": (640, 590),
}
"""What things cost, and what they cost last year."""
OTHERS = {
    "How long is the return window?": "The return window is 30 days.",
    "How long does standard delivery take?": "Standard delivery takes five working days.",
}
RELEASES = ("1.0", "2.0", "3.0", "4.0")
GOOD, STALE, LOST, CUT = RELEASES


def documents(release: str) -> list[Document]:
    """What the app of a release knows."""
    sentences = [f"The price of the {name} is {prices[release == STALE]} euros." for name, prices in PRICES.items()]
    if release == LOST:
        sentences = [f"The {name} comes in one parcel." for name in PRICES]
    pages = [f"{sentence} Ask us for more." for sentence in (*sentences, *OTHERS.values())]
    return [Document(f"page/{number}", text) for number, text in enumerate(pages)]


def write_gold_set(file: Path) -> Path:
    """The questions with the answers that are right today; the prices carry a tag."""
    prices = [
        {
            "question": f"What is the price of the {name}?",
            "reference": f"The {name} has a price of {now} euros.",
            "tags": ["prices"],
        }
        for name, (now, _) in PRICES.items()
    ]
    others = [{"question": question, "reference": known} for question, known in OTHERS.items()]
    file.write_text("".join(json.dumps(row) + "\n" for row in [*prices, *others]))
    return file


def write_joined_gold_set(file: Path) -> Path:
    """Questions with two parts each, the price of something and something else."""
    rows = [
        {
            "question": f"What is the price of the {name}, and {other[0].lower()}{other[1:]}",
            "reference": f"The {name} has a price of {now} euros. {known}",
        }
        for name, (now, _) in PRICES.items()
        for other, known in [list(OTHERS.items())[len(name) % len(OTHERS)]]
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def asked(question: str, release: str) -> Asked:
    """A question as the app of a release answers it: each part by the first sentence of the best passage."""
    parts = question.split(", and ")
    found = [[document.text for document, _ in retrieve(part, documents(release))] for part in parts]
    sentences = [passages[0].partition(" Ask")[0] for passages in found]
    told = sentences[:1] if release == CUT else sentences
    return Asked(question, " ".join(told), tuple(dict.fromkeys(text for passages in found for text in passages)))


def ask(question: str) -> dict[str, object]:
    """The app's second release as a function."""
    one = asked(question, STALE)
    return {"answer": one.answer, "contexts": list(one.contexts), "release": STALE}


class RagService:
    """The running app; `release` can be changed, as by a deployment. `passes_on`: it takes part in a caller's trace."""

    def __init__(self, exporters: Sequence[SpanExporter]) -> None:
        self.url = ""
        self.release = RELEASES[0]
        self.passes_on = True
        self.requests = 0
        exporter = iter(exporters)
        self._providers = {
            release: provider(each, **{"service.version": release})
            for release, each in zip(RELEASES, exporter, strict=False)
        }

    def answer(self, question: str, headers: dict[str, str]) -> dict[str, object]:
        """Answers one question inside the caller's trace, or one of its own."""
        self.requests += 1
        release = self.release
        found = asked(question, release)
        if release in self._providers:
            above = TraceContextTextMapPropagator().extract(headers) if self.passes_on else context.Context()
            token = context.attach(above)
            try:
                answer(self._providers[release].get_tracer("rag"), found)
            finally:
                context.detach(token)
        return {"answer": found.answer, "passages": [{"text": text} for text in found.contexts], "version": release}

    def close(self) -> None:
        """Sends what has not left yet."""
        for each in self._providers.values():
            each.shutdown()


@contextmanager
def rag_service(*exporters: SpanExporter) -> Iterator[RagService]:
    """The app on a free port; an exporter per release, or none at all."""
    app = RagService(exporters)

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - http.server's name
            question = json.loads(self.rfile.read(int(self.headers["content-length"])))["question"]
            body = json.dumps(
                app.answer(question, {key.lower(): value for key, value in self.headers.items()})
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http_serving(Handler) as url:
        app.url = f"{url}/ask"
        try:
            yield app
        finally:
            app.close()
