"""An OTLP destination in a process of its own: what our exporters send is read by somebody who is not us.

    with otlp_sink() as sink:
        ... send to sink.http or sink.grpc ...
        received = sink.wait(spans=1, logs=3)

It keeps every span and log record, decoded, until `clear`, and every body as it came. `script` makes it refuse the next
requests. It ends when its standard input does, so that it cannot outlive the test.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
import grpc
import uvicorn
from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_service
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_service
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

_REQUESTS: dict[str, Any] = {
    "traces": trace_service.ExportTraceServiceRequest,
    "logs": logs_service.ExportLogsServiceRequest,
    "metrics": metrics_service.ExportMetricsServiceRequest,
}
_RESPONSES: dict[str, Any] = {
    "traces": trace_service.ExportTraceServiceResponse,
    "logs": logs_service.ExportLogsServiceResponse,
    "metrics": metrics_service.ExportMetricsServiceResponse,
}
_REJECTED = {"traces": "rejected_spans", "logs": "rejected_log_records", "metrics": "rejected_data_points"}
_SERVICES = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
}
_GRPC_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.UNIMPLEMENTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}


# ---------------------------------------------------------------- the test's side


@dataclass(frozen=True)
class Received:
    """Everything since the start or the last `clear`.

    `spans` and `logs` are plain dictionaries: ids as lower-case hex, attributes as Python values, the resource's
    attributes under `resource`, the scope's name under `scope`. `requests` holds, in order of arrival and refused
    ones included, {signal, protocol, headers, status}. HTTP is answered under any prefix of /v1/traces, /v1/logs and
    /v1/metrics. Bodies in JSON are kept as they are and not read.
    """

    spans: list[dict[str, Any]]
    logs: list[dict[str, Any]]
    requests: list[dict[str, Any]]


@dataclass(frozen=True)
class Body:
    """One accepted request: what it held, without its compression. `media_type` is empty for gRPC."""

    signal: str
    protocol: str
    media_type: str
    content: bytes


class Sink:
    """A running sink. `http` and `grpc` are the endpoints to configure."""

    def __init__(self, http: str, grpc_endpoint: str) -> None:
        self.http, self.grpc = http, grpc_endpoint

    def endpoint(self, protocol: str) -> str:
        return self.http if protocol == "http" else self.grpc

    def received(self) -> Received:
        return self.wait()

    def wait(self, *, spans: int = 0, logs: int = 0, requests: int = 0, timeout: float = 20) -> Received:
        """Returns once at least so many have come; TimeoutError says how many had."""
        wanted = {"spans": spans, "logs": logs, "requests": requests}
        answer = self._call("/wait", {"wanted": wanted, "timeout": timeout})
        received = Received(answer["spans"], answer["logs"], answer["requests"])
        if not answer["enough"]:
            got = {name: len(getattr(received, name)) for name in wanted}
            raise TimeoutError(f"{wanted} expected within {timeout} s; got {got}")
        return received

    async def awaited(self, *, spans: int = 0, logs: int = 0, requests: int = 0) -> Received:
        """`wait` for tests whose event loop must go on."""
        return await anyio.to_thread.run_sync(lambda: self.wait(spans=spans, logs=logs, requests=requests))

    def bodies(self) -> list[Body]:
        """All accepted requests in order of arrival."""
        return [Body(*row[:3], base64.b64decode(row[3])) for row in self._call("/bodies", {})["bodies"]]

    def script(
        self,
        signal: str,
        *,
        times: int,
        status: int,
        retry_after: int | None = None,
        rejected: int = 0,
        delay: float = 0.0,
    ) -> None:
        """The next `times` requests get this HTTP status or its gRPC counterpart; 200 with `rejected` is partial.

        The answer comes after `delay` seconds.
        """
        step = {"status": status, "retry_after": retry_after, "rejected": rejected, "delay": delay}
        self._call("/script", {"signal": signal, "steps": [step] * times})

    def clear(self) -> None:
        """Forgets what has come and what was scripted."""
        self._call("/clear", {})

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(self.http + path, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
            return answer


@contextmanager
def otlp_sink(*, read: bool = True) -> Iterator[Sink]:
    """Starts a sink on free ports of 127.0.0.1 and ends it; without `read` it only keeps bodies, and is quick."""
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "tests.otlp_sink", *([] if read else ["--bodies-only"])]
    with subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            addresses = json.loads(process.stdout.readline())
            yield Sink(addresses["http"], addresses["grpc"])
        finally:
            process.stdin.close()
            process.wait(timeout=20)


# ---------------------------------------------------------------- the sink's side


class _Store:
    def __init__(self, *, read: bool) -> None:
        self.changed = asyncio.Condition()
        self.read = read
        self.clear()

    def clear(self) -> None:
        self.steps: dict[str, list[dict[str, Any]]] = {signal: [] for signal in _REQUESTS}
        self.received: dict[str, list[dict[str, Any]]] = {"spans": [], "logs": [], "requests": []}
        self.bodies: list[tuple[str, str, str, bytes]] = []

    async def take(self, signal: str, protocol: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        """Keeps what the request holds, unless the script refuses it; returns the step that was played."""
        step = self.steps[signal].pop(0) if self.steps[signal] else {"status": 200, "rejected": 0}
        media_type = headers.get("content-type", "") if protocol == "http" else ""
        unread = not self.read or media_type.startswith("application/json")
        request = None if unread else _REQUESTS[signal].FromString(body)
        since = self.bodies
        await asyncio.sleep(step.get("delay", 0.0))
        if since is not self.bodies:
            return step  # forgotten meanwhile
        async with self.changed:
            if step["status"] == 200:
                self.bodies.append((signal, protocol, media_type, body))
                if request is not None and signal != "metrics":
                    kept = self.received["spans" if signal == "traces" else "logs"]
                    kept.extend(_spans(request) if signal == "traces" else _logs(request))
            note = {"signal": signal, "protocol": protocol, "headers": headers, "status": step["status"]}
            self.received["requests"].append(note)
            self.changed.notify_all()
        return step

    async def wait(self, wanted: dict[str, int], seconds: float) -> dict[str, Any]:
        def enough() -> bool:
            return all(len(self.received[name]) >= count for name, count in wanted.items())

        async with self.changed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait_for(enough), seconds)
            return {**self.received, "enough": enough()}


def _spans(request: Any) -> Iterator[dict[str, Any]]:
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield {
                    "resource": _attributes(of_resource.resource.attributes),
                    "scope": of_scope.scope.name,
                    "trace_id": span.trace_id.hex(),
                    "span_id": span.span_id.hex(),
                    "parent_span_id": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "flags": span.flags,
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": _attributes(span.attributes),
                    "links": [{"trace_id": ln.trace_id.hex(), "span_id": ln.span_id.hex()} for ln in span.links],
                }


def _logs(request: Any) -> Iterator[dict[str, Any]]:
    for of_resource in request.resource_logs:
        for of_scope in of_resource.scope_logs:
            for record in of_scope.log_records:
                yield {
                    "resource": _attributes(of_resource.resource.attributes),
                    "scope": of_scope.scope.name,
                    "trace_id": record.trace_id.hex(),
                    "span_id": record.span_id.hex(),
                    "event_name": record.event_name,
                    "severity": record.severity_text,
                    "severity_number": record.severity_number,
                    "time": record.time_unix_nano,
                    "attributes": _attributes(record.attributes),
                }


def _attributes(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pair: KeyValue
    for pair in pairs:
        assert pair.key not in found, f"the key {pair.key} comes twice"
        found[pair.key] = _value(pair.value)
    return found


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind) if kind else None


def _response(signal: str, step: dict[str, Any]) -> Any:
    response = _RESPONSES[signal]()
    if step["rejected"]:
        setattr(response.partial_success, _REJECTED[signal], step["rejected"])
        response.partial_success.error_message = "scripted"
    return response


def _http_app(store: _Store) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        status, headers, answer = await answered(scope, body)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def answered(scope: Any, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        path = scope["path"]
        if path.endswith(("/v1/traces", "/v1/logs", "/v1/metrics")):
            signal = path.rpartition("/")[2]
            headers = {key.decode(): value.decode() for key, value in scope["headers"]}
            body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            step = await store.take(signal, "http", headers, body)
            after = step.get("retry_after")
            extra = [] if after is None else [(b"retry-after", str(after).encode())]
            if headers.get("content-type", "").startswith("application/json"):
                return step["status"], [(b"content-type", b"application/json"), *extra], b"{}"
            kind = (b"content-type", b"application/x-protobuf")
            if step["status"] != 200:
                return step["status"], [kind, *extra], b""
            return 200, [kind], _response(signal, step).SerializeToString()
        asked = json.loads(body or b"{}")
        if path == "/wait":
            return 200, [], json.dumps(await store.wait(asked["wanted"], asked["timeout"])).encode()
        if path == "/bodies":
            rows = [(*row[:3], base64.b64encode(row[3]).decode()) for row in store.bodies]
            return 200, [], json.dumps({"bodies": rows}).encode()
        if path == "/script":
            store.steps[asked["signal"]].extend(asked["steps"])
        elif path == "/clear":
            store.clear()
        else:
            return 404, [], b"{}"
        return 200, [], b"{}"

    return app


def _grpc_handler(store: _Store, signal: str) -> grpc.GenericRpcHandler:
    async def export(body: bytes, context: grpc.aio.ServicerContext) -> bytes:
        headers = {key: str(value) for key, value in context.invocation_metadata() or ()}
        step = await store.take(signal, "grpc", headers, body)
        if step["status"] != 200:
            code = _GRPC_CODES[step["status"]]
            if (after := step.get("retry_after")) is not None:
                packed = PackedAny()
                packed.Pack(RetryInfo(retry_delay=Duration(seconds=after)))
                details = Status(code=code.value[0], details=[packed]).SerializeToString()
                context.set_trailing_metadata((("grpc-status-details-bin", details),))
            await context.abort(code, "scripted")
        return _response(signal, step).SerializeToString()

    return grpc.method_handlers_generic_handler(
        _SERVICES[signal], {"Export": grpc.unary_unary_rpc_method_handler(export)}
    )


async def _serve() -> None:
    store = _Store(read="--bodies-only" not in sys.argv)
    rpc = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    rpc.add_generic_rpc_handlers([_grpc_handler(store, signal) for signal in _REQUESTS])
    port = rpc.add_insecure_port("127.0.0.1:0")
    await rpc.start()
    config = uvicorn.Config(_http_app(store), port=0, log_level="error", lifespan="off")
    bound = config.bind_socket()
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([bound]))
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event for it
        await asyncio.sleep(0.005)
    addresses = {"http": f"http://127.0.0.1:{bound.getsockname()[1]}", "grpc": f"http://127.0.0.1:{port}"}
    print(json.dumps(addresses), flush=True)  # noqa: T201 - the parent reads it
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving
    await rpc.stop(0)


if __name__ == "__main__":
    asyncio.run(_serve())
