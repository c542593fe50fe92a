"""Starts the real Prometheus and Alertmanager on loopback, for tests marked `server`, and asks them things.

They come from the system, not from PyPI: see INSTALL.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlencode

import pytest
import yaml

from tests.http_serving import QuietHandler, http_serving

PACKAGES = "prometheus prometheus-alertmanager buildah mmdebstrap docker-compose chromium"
INSTALL = f"apt-get install --no-install-recommends {PACKAGES}"
READY_SECONDS = 60
T = TypeVar("T")


def binary(name: str, install: str = INSTALL) -> str:
    """Path of a program; where there is none the test is skipped, or fails where CI=true says it must run."""
    path = shutil.which(name)
    if path is None:
        cannot_run(f"{name} is not installed: {install}")
    return path


def cannot_run(why: str) -> NoReturn:
    """Skips the test, or fails it where CI=true says that it must run."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def free_port() -> int:
    """A port that was free a moment ago: the servers can't be asked which one they took."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Sample:
    """One series of an answer, at one moment."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Server:
    """A server that answers at `url`."""

    url: str

    def ask(self, path: str, **query: str | float) -> Any:
        """The JSON that a GET gives."""
        with urllib.request.urlopen(f"{self.url}{path}?{urlencode(query)}", timeout=10) as response:
            return json.load(response)


class PrometheusServer(Server):
    """What a test wants to know from Prometheus."""

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """The series of an instant query, now or at a moment in Unix seconds."""
        moment = {} if at is None else {"time": at}
        found = self.ask("/api/v1/query", query=expression, **moment)["data"]["result"]
        return [Sample(each["metric"], float(each["value"][1])) for each in found]

    def wait_query(self, expression: str, seconds: float = 30) -> list[Sample]:
        """The series of an instant query, as soon as there are any."""
        return wait(lambda: self.query(expression), f"no result in {seconds} s: {expression}", seconds)

    def exemplars(self, expression: str, minutes: float = 60) -> list[dict[str, Any]]:
        """The exemplars behind the series of an expression: labels, value, timestamp."""
        now = time.time()
        found = self.ask("/api/v1/query_exemplars", query=expression, start=now - 60 * minutes, end=now + 60)
        return [exemplar for series in found["data"] for exemplar in series["exemplars"]]

    def wait_rules(self) -> None:
        """Until every rule has looked at what is stored by now; twice, for rules that read what others record."""
        for _ in range(2):
            now = datetime.now(UTC)
            wait(lambda now=now: all(done > now for done in self._evaluated()), "rules are not evaluated")

    def _evaluated(self) -> list[datetime]:
        groups = self.ask("/api/v1/rules")["data"]["groups"]
        # Nanoseconds are more than fromisoformat reads.
        return [datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", group["lastEvaluation"])) for group in groups]

    def alerts(self) -> list[dict[str, Any]]:
        """Pending and firing alerts: labels, annotations, state."""
        return list(self.ask("/api/v1/alerts")["data"]["alerts"])


def wait(found: Callable[[], T], otherwise: str, seconds: float = 30) -> T:
    """The first true value of `found`, which asks something outside this process; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)
    return value


@contextmanager
def prometheus(config: Mapping[str, Any], folder: Path) -> Iterator[PrometheusServer]:
    """Prometheus with `config` (as in prometheus.yml) and its data in `folder`; exemplars are kept."""
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(dict(config)))
    options = [
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
    ]
    with _running([binary("prometheus"), *options], folder) as url:
        yield PrometheusServer(url)


@contextmanager
def alertmanager(config: Mapping[str, Any], folder: Path) -> Iterator[Server]:
    """Alertmanager with `config` (as in alertmanager.yml), without its cluster."""
    file = folder / "alertmanager.yml"
    file.write_text(yaml.safe_dump(dict(config)))
    options = [f"--config.file={file}", f"--storage.path={folder / 'alerts'}", "--cluster.listen-address="]
    with _running([binary("prometheus-alertmanager"), *options, "--log.level=warn"], folder) as url:
        yield Server(url)


@dataclass(frozen=True)
class Collector:
    """A collector that receives OTLP at `grpc` and `http` (URLs)."""

    grpc: str
    http: str


@contextmanager
def rotel(to: str, folder: Path, *more: str) -> Iterator[Collector]:
    """The collector rotel (of the `dev` extra), which sends what it gets to the OTLP/HTTP base URL `to`.

    `more`: further options.
    """
    package = importlib.util.find_spec("rotel")
    if package is None or package.origin is None:
        program = binary("rotel-agent", "pip install rotel==0.0.1a15")
    else:
        program = str(Path(package.origin).parent / "rotel-agent")
    grpc, http = (f"127.0.0.1:{free_port()}" for _ in range(2))
    options = f"--otlp-grpc-endpoint {grpc} --otlp-http-endpoint {http} --exporter otlp --batch-timeout 200ms"
    sending = f"--otlp-exporter-endpoint {to} --otlp-exporter-protocol http"
    log = folder / "rotel.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "start", *options.split(), *sending.split(), *more], stdout=output, stderr=output
        )

    def listening() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(ConnectionError), socket.create_connection(("127.0.0.1", int(http.rpartition(":")[2])), 5):
            return True
        return False

    try:
        wait(listening, f"rotel does not listen: {log.read_text()}")
        yield Collector(f"http://{grpc}", f"http://{http}")
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A place Alertmanager can send to: its URL, and the alerts that have come."""
    came: list[dict[str, Any]] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - http.server's name
            came.extend(json.loads(self.rfile.read(int(self.headers["content-length"])))["alerts"])
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    with http_serving(Handler) as url:
        yield url, came


@contextmanager
def _running(command: list[str], folder: Path) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=output, stderr=output)
    try:
        _wait_ready(process, f"http://{address}/-/ready", log)
        yield f"http://{address}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    def ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    wait(ready, f"not ready in {READY_SECONDS} s: {url}", READY_SECONDS)
