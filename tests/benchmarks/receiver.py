"""CPU of the receiver beside the plain way to write one, in the same run: `python tests/benchmarks/receiver.py`.

Ours: the real HTTP and gRPC receivers, sampling that admits one trace in ten, assembly, and the decoding of what it
hands out. Plain: an aiohttp server that parses every request in full, makes a dict of the attributes of every span
and keeps those of one trace in ten. Each server is a process of its own; they take turns, and what counts is their
own CPU time per 1,000 spans, from the first request until the last trace is decoded: wall time and spans per second
depend on whatever else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import gzip
import hashlib
import http.client
import random
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import anyio
import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

ADMITTED = 0.1
AIMS = {"ordinary": 15, "rag": 4}
"""How many times cheaper than plain the HTTP receiver is meant to be."""

# ---------------------------------------------------------------- load

EPOCH = b"\xf1\xe2\xd3\xc4"
"""Stands at the beginning of every trace id and is replaced by a number, so that no request repeats another."""


class Load:
    """Bodies of one shape, the spans in each, and fresh ids for every one sent."""

    def __init__(self, bodies: list[bytes], spans: int) -> None:
        self._bodies, self.spans = bodies, spans
        self._sent = 0

    def next(self) -> bytes:
        self._sent += 1
        return self._bodies[self._sent % len(self._bodies)].replace(EPOCH, struct.pack(">I", self._sent))


def build(shape: str, bodies: int = 8) -> Load:
    """`ordinary`: 512 spans of about 400 bytes, 8 a trace; `rag`: 50 traces of 6 spans and about 12 KB."""
    chance = random.Random(1)
    traces, spans, add = (64, 512, _ordinary_trace) if shape == "ordinary" else (50, 300, _rag_trace)
    built = []
    for _ in range(bodies):
        request = ExportTraceServiceRequest()
        group = request.resource_spans.add()
        for key in ("service.name", "service.version", "telemetry.sdk.language", "host.name", "k8s.pod.name"):
            group.resource.attributes.append(_pair(key, f"{key}-{chance.randrange(100)}"))
        scoped = group.scope_spans.add()
        scoped.scope.name = "io.opentelemetry.http" if shape == "ordinary" else "openinference.instrumentation.demo"
        for _ in range(traces):
            add(scoped, chance)
        built.append(request.SerializeToString())
    return Load(built, spans)


def _pair(key: str, value: str | bool | float) -> KeyValue:
    kinds = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}
    return KeyValue(key=key, value=AnyValue(**{kinds[type(value)]: value}))


def _span(scoped: ScopeSpans, chance: random.Random, trace: bytes, parent: bytes, name: str, **attributes) -> bytes:
    start = time.time_ns()
    span = scoped.spans.add(trace_id=trace, span_id=chance.randbytes(8), parent_span_id=parent, name=name, kind=2)
    span.start_time_unix_nano, span.end_time_unix_nano = start, start + chance.randrange(10**8)
    span.attributes.extend(_pair(key.replace("__", "."), value) for key, value in attributes.items())
    return span.span_id


def _words(chance: random.Random, size: int) -> str:
    return " ".join(chance.choices(("lorem", "kanu", "bicycle", "of", "repair", "a", "dock", "winter"), k=size // 6))


def _ordinary_trace(scoped: ScopeSpans, chance: random.Random) -> None:
    trace, parent = EPOCH + chance.randbytes(12), b""
    for _ in range(8):
        made = _span(
            scoped, chance, trace, parent, f"GET /api/v1/orders/{chance.randrange(100)}",
            http__request__method="GET", http__route="/api/v1/{id}", url__path=f"/v1/{chance.randrange(10**7)}",
            url__scheme="https", http__response__status_code=200, server__address="orders.internal",
            server__port=8443, network__protocol__version="1.1", client__address=f"10.2.3.{chance.randrange(250)}",
            thread__id=chance.randrange(400), app__cached=chance.random() < 0.5, db__duration=chance.random(),
        )  # fmt: skip
        parent = parent or made


def _rag_trace(scoped: ScopeSpans, chance: random.Random) -> None:
    trace = EPOCH + chance.randbytes(12)
    question, answer = _words(chance, 120), _words(chance, 500)
    passages = [_words(chance, 600) for _ in range(5)]

    def add(parent: bytes, kind: str, **attributes) -> bytes:
        return _span(scoped, chance, trace, parent, kind.lower(), openinference__span__kind=kind, **attributes)

    def documents(prefix: str, count: int) -> dict[str, str | float]:
        listed: dict[str, str | float] = {}
        for number, passage in enumerate(passages[:count]):
            listed[f"{prefix}__{number}__document__id"] = f"doc-{chance.randrange(10**6)}"
            listed[f"{prefix}__{number}__document__content"] = passage
            listed[f"{prefix}__{number}__document__score"] = chance.random()
            listed[f"{prefix}__{number}__document__metadata"] = '{"source": "handbook.md"}'
        return listed

    root = add(
        b"", "CHAIN", input__value=question, input__mime_type="text/plain", output__value=answer, session__id="s-1"
    )
    add(root, "EMBEDDING", embedding__model_name="small", embedding__embeddings__0__embedding__text=question)
    add(root, "RETRIEVER", input__value=question, **documents("retrieval__documents", 5))
    add(root, "RERANKER", reranker__query=question, **documents("reranker__output_documents", 3))
    add(
        root, "LLM", gen_ai__operation__name="chat", gen_ai__request__model="m", llm__model_name="m",
        llm__provider="openai", llm__invocation_parameters='{"temperature": 0.2}',
        llm__input_messages__0__message__role="system", llm__input_messages__0__message__content=_words(chance, 200),
        llm__input_messages__1__message__role="user",
        llm__input_messages__1__message__content="\n".join([*passages[:3], question]),
        llm__output_messages__0__message__role="assistant", llm__output_messages__0__message__content=answer,
        llm__token_count__prompt=640, llm__token_count__completion=112, llm__token_count__total=752,
    )  # fmt: skip
    add(root, "GUARDRAIL", input__value=answer, output__value="pass", guardrail__name="pii")


# ---------------------------------------------------------------- servers


async def serve_ours() -> None:
    """The receivers as the service wires them, without what comes behind assembly."""
    from prometheus_client import CollectorRegistry

    from tracescore.assembly import Assembly
    from tracescore.config import AssemblyConfig, ReceiverConfig, SamplingConfig
    from tracescore.interactions import MARKERS
    from tracescore.net.listener import address_of, bind, serving
    from tracescore.otlp.decode import decode
    from tracescore.receiver.grpc import serving_grpc
    from tracescore.receiver.http import HttpReceiver
    from tracescore.receiver.intake import Intake
    from tracescore.runtime import keep_freed_memory
    from tracescore.sampling import Sampler

    keep_freed_memory()
    registry = CollectorRegistry()
    assembly = Assembly(AssemblyConfig.model_validate({"idle": "500ms"}), MARKERS, registry, time.time)

    class Sink:
        """Straight into assembly, without the journal and its spool."""

        room, fair = staticmethod(assembly.room), staticmethod(assembly.fair)

        @staticmethod
        async def take(spans, logs, _withheld=(), sender="") -> None:
            assembly.take(spans, logs, sender)

    intake = Intake(
        ReceiverConfig(), Sink(), Sampler(SamplingConfig(ratio=ADMITTED), registry, time.time).admits, registry
    )
    bound = bind("127.0.0.1:0", "receiver.http.listen")
    async with serving(HttpReceiver(intake), bound), serving_grpc(intake, "127.0.0.1:0") as address:
        gc.freeze()
        _ready(address_of(bound), address)
        while True:
            await anyio.sleep(0 if assembly.behind else 0.1)
            for raw in assembly.due():
                decode(raw)


async def serve_plain() -> None:
    """What one would write first."""
    from aiohttp import web

    held: dict[bytes, list[object]] = {}

    async def export(request: web.Request) -> web.Response:
        body = await request.read()
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = {pair.key: _plain_value(pair) for pair in group.resource.attributes}
            for scoped in group.scope_spans:
                for span in scoped.spans:
                    attributes = {pair.key: _plain_value(pair) for pair in span.attributes}
                    if hashlib.blake2b(span.trace_id).digest()[0] < 256 * ADMITTED:
                        held.setdefault(span.trace_id, []).append((resource, span.name, attributes))
        if len(held) > 1000:
            held.clear()
        return web.Response(body=b"", content_type="application/x-protobuf")

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/traces", export)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    _ready(f"{host}:{port}", "")
    await asyncio.Event().wait()


def _plain_value(pair: KeyValue) -> object:
    kind = pair.value.WhichOneof("value")
    return getattr(pair.value, kind) if kind else None


def _ready(http_address: str, grpc_address: str) -> None:
    """Tells the addresses, then the CPU seconds used so far whenever asked; ends when nobody asks any more."""
    print(http_address, grpc_address, flush=True)

    def answer() -> None:
        for _ in sys.stdin:
            print(time.process_time(), flush=True)

    threading.Thread(target=answer, daemon=True).start()


class Server:
    """One of the two in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        self._in, self._out = process.stdin, process.stdout
        self.http, _, self.grpc = self._out.readline().strip("\n").partition(" ")

    def cpu(self) -> float:
        self._in.write("\n")
        self._in.flush()
        return float(self._out.readline())


@contextmanager
def running(name: str) -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Server(process)
    finally:
        process.kill()
        process.wait()


# ---------------------------------------------------------------- measuring

CONNECTIONS = 4


def send_http(server: Server, load: Load, requests: int, compress: bool) -> None:
    headers = {"content-type": "application/x-protobuf"} | ({"content-encoding": "gzip"} if compress else {})
    bodies = [load.next() for _ in range(requests)]
    bodies = [gzip.compress(body, 6) for body in bodies] if compress else bodies

    def connection(number: int) -> None:
        host, _, port = server.http.rpartition(":")
        client = http.client.HTTPConnection(host, int(port))
        for body in bodies[number::CONNECTIONS]:
            client.request("POST", "/v1/traces", body, headers)
            answer = client.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            answer.read()
        client.close()

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(connection, range(CONNECTIONS)))


def send_grpc(server: Server, load: Load, requests: int) -> None:
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            list(threads.map(call, [load.next() for _ in range(requests)]))


def measure(
    server: Server, load: Load, send: Callable[[Server, Load, int], None], requests: int, pause: float
) -> float:
    """CPU milliseconds per 1,000 spans; `pause` is how long after the last request the server has work left."""
    before, spans = server.cpu(), load.spans * requests
    send(server, load, requests)
    time.sleep(pause)
    return (server.cpu() - before) / spans * 1e6


CASES: dict[str, tuple[str, Callable[[Server, Load, int], None]]] = {
    "plain": ("plain", lambda server, load, requests: send_http(server, load, requests, compress=False)),
    "http": ("ours", lambda server, load, requests: send_http(server, load, requests, compress=False)),
    "http gzip": ("ours", lambda server, load, requests: send_http(server, load, requests, compress=True)),
    "grpc": ("ours", send_grpc),
}


def main(rounds: int, requests: int) -> None:
    """Prints a table; every round takes all cases in turn."""
    loads = {shape: build(shape) for shape in AIMS}
    results: dict[tuple[str, str], list[float]] = {(shape, case): [] for shape in AIMS for case in CASES}
    with running("plain") as plain, running("ours") as ours:
        servers = {"plain": plain, "ours": ours}
        for shape, case in results:  # warms up
            measure(servers[CASES[case][0]], loads[shape], CASES[case][1], 8, 0.0)
        for _ in range(rounds):
            for (shape, case), values in results.items():
                name, send = CASES[case]
                values.append(measure(servers[name], loads[shape], send, requests, 0.0 if name == "plain" else 1.0))
    print(f"{'shape':10} {'case':10} {'CPU ms per 1,000 spans':>24} {'plain / case':>13}")
    for (shape, case), values in results.items():
        ratio = statistics.median(results[shape, "plain"]) / statistics.median(values)
        aim = f"   (aim: {AIMS[shape]})" if case == "http" else ""
        print(f"{shape:10} {case:10} {statistics.median(values):17.2f} ±{_spread(values):5.2f} {ratio:12.1f}x{aim}")


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", choices=["ours", "plain"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200, help="of each case in each round")
    options = parser.parse_args()
    if options.serve:
        anyio.run(serve_ours if options.serve == "ours" else serve_plain, backend_options={"use_uvloop": True})
    else:
        main(options.rounds, options.requests)
