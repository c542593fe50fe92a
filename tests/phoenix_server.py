"""A real Phoenix, in a network of its own: its gRPC port would listen on all addresses of the machine.

Phoenix and a small relay run inside a network namespace that has nothing but loopback; the relay hands connections
over from a Unix socket, which namespaces do not keep apart, and a second one outside offers them on 127.0.0.1.

It is heavy, and so no dependency of ours: pip install arize-phoenix==20.26.1 into an environment of its own, and
name its program in TRACESCORE_PHOENIX, or have it on the PATH.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.otlp import Span, attributes, traces
from tests.servers import binary, wait

INSTALL = "pip install arize-phoenix==20.26.1 into an environment of its own and set TRACESCORE_PHOENIX"
READY_SECONDS = 240
_PORT, _GRPC_PORT = 6006, 4317  # of the namespace

# ---------------------------------------------------------------- the test's side


class Phoenix:
    """A running Phoenix. `url` is its page and API, and takes OTLP under /v1/traces."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **query: Any) -> Any:
        """The JSON that a GET gives."""
        with urllib.request.urlopen(f"{self.url}{path}?{urlencode(query, doseq=True)}", timeout=30) as response:
            return json.load(response)

    def annotations(self, span_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The annotations of spans of the default project."""
        with suppress(urllib.error.HTTPError):  # 404 until the first span is there
            found = self.ask("/v1/projects/default/span_annotations", span_ids=span_ids, limit=1000)
            return list(found["data"])
        return []

    def wait_annotations(self, span_ids: Sequence[str], count: int) -> list[dict[str, Any]]:
        """The annotations of spans, as soon as there are so many."""

        def enough() -> list[dict[str, Any]] | None:
            found = self.annotations(span_ids)
            return found if len(found) >= count else None

        found = wait(enough, f"no {count} annotations of {span_ids}: {self.annotations(span_ids)}", 60)
        assert found is not None
        return found

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        """The spans of a trace in the default project."""
        found = self.ask("/v1/projects/default/spans", limit=1000)["data"]
        return [span for span in found if span["context"]["trace_id"] == trace_id]

    def send_span(self, trace_id: str, span_id: str) -> None:
        """One span, as an app's exporter would send it."""
        span = Span(
            trace_id=bytes.fromhex(trace_id),
            span_id=bytes.fromhex(span_id),
            name="rag",
            start_time_unix_nano=10**18,
            end_time_unix_nano=10**18 + 1,
            attributes=attributes({"openinference.span.kind": "CHAIN"}),
        )
        headers = {"Content-Type": "application/x-protobuf"}
        body = traces([span]).SerializeToString()
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/v1/traces", body, headers), timeout=30).close()


@contextmanager
def running(folder: Path) -> Iterator[Phoenix]:
    """Starts a Phoenix with its data in `folder` and ends it; skips, or fails in CI, where there is none."""
    program = os.environ.get("TRACESCORE_PHOENIX") or binary("phoenix", INSTALL)
    unshare = shutil.which("unshare")
    assert unshare, "unshare is not installed: apt-get install util-linux"
    root = Path(__file__).parent.parent
    meeting = folder / "phoenix.sock"
    command = [unshare, "--map-root-user", "--net", sys.executable, "-m", "tests.phoenix_server", str(meeting), program]
    log = folder / "phoenix.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "PHOENIX_WORKING_DIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        ) as process,
        _relaying(meeting) as url,
    ):

        def ready() -> bool:
            assert process.poll() is None, log.read_text()
            with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
                return True
            return False

        try:
            wait(ready, f"Phoenix is not ready: {log.read_text()[-2000:]}", READY_SECONDS)
            yield Phoenix(url)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=30)


@contextmanager
def _relaying(meeting: Path) -> Iterator[str]:
    """Offers what listens on the Unix socket on a free port of 127.0.0.1."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        relay = _relay(lambda: asyncio.open_unix_connection(meeting))
        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        started.set_result((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, stop, port = started.result(timeout=10)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


# ---------------------------------------------------------------- both sides

Connect = Callable[[], Coroutine[Any, Any, tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
Relay = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def _relay(connect: Connect) -> Relay:
    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await connect()
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    return relay


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.close()


# ---------------------------------------------------------------- inside


def _raise_loopback() -> None:
    """A new network namespace has a loopback that is down."""
    up, set_flags = 0x1, 0x8914  # IFF_UP, SIOCSIFFLAGS
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh", b"lo", up))


async def _inside(meeting: str, program: str) -> None:
    _raise_loopback()
    settings = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(_PORT),
        "PHOENIX_GRPC_PORT": str(_GRPC_PORT),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    without_ours = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    phoenix = await asyncio.create_subprocess_exec(program, "serve", env=without_ours | settings)
    relay = _relay(lambda: asyncio.open_connection("127.0.0.1", _PORT))
    server = await asyncio.start_unix_server(relay, meeting)
    ended = asyncio.create_task(phoenix.wait())
    told = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait([ended, told], return_when=asyncio.FIRST_COMPLETED)
    server.close()
    with suppress(ProcessLookupError):
        phoenix.kill()
    await phoenix.wait()
    os._exit(0)  # the thread that waits for the standard input may still do so


if __name__ == "__main__":
    asyncio.run(_inside(*sys.argv[1:]))
