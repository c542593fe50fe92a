"""Runs tracescore as users do: as a process of its own; `serve` on free ports, told apart by what it logs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

FREE_PORTS = """\
receiver: {grpc: {listen: "127.0.0.1:0"}, http: {listen: "127.0.0.1:0"}}
web: {listen: "127.0.0.1:0"}
exporters: {prometheus: {listen: "127.0.0.1:0"}}
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, without a network to take models from."""
    return subprocess.run(
        [sys.executable, "-m", "tracescore.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"} | environment,
    )


class Running:
    """A service process: its addresses by name (grpc, http, metrics, page), its log, its metrics."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[str] = []
        self.addresses: dict[str, str] = {}
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            if "event=listening" in line:
                self.addresses = dict(re.findall(r"(\w+)=(\S+:\d+)", line))
                self._listening.set()
        self._listening.set()

    def wait_settled(self) -> None:
        """Waits until it listens or has ended."""
        assert self._listening.wait(60), self.log

    def wait_listening(self) -> None:
        self.wait_settled()
        assert self.addresses, self.log

    def get(self, name: str, path: str, headers: dict[str, str] | None = None) -> str:
        request = urllib.request.Request(f"http://{self.addresses[name]}{path}", headers=headers or {})
        with urllib.request.urlopen(request, timeout=10) as response:
            return str(response.read().decode())

    def samples(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        families = text_string_to_metric_families(self.get("metrics", "/metrics"))
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}

    def value(self, name: str, **labels: str) -> float:
        """Sum of the samples of that name that carry these labels."""
        wanted = set(labels.items())
        return sum(value for (n, found), value in self.samples().items() if n == name and wanted <= set(found))

    def wait_value(self, wanted: float, name: str, seconds: float = 60, **labels: str) -> None:
        deadline = time.monotonic() + seconds
        while (found := self.value(name, **labels)) < wanted:
            assert time.monotonic() < deadline, (name, labels, found, wanted, self.log[-20:])
            assert self.process.poll() is None, self.log
            time.sleep(0.05)  # a scrape is the only way to see a counter from outside

    def wait_log(self, words: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not any(words in line for line in list(self.log)):
            assert time.monotonic() < deadline, (words, self.log[-20:])
            time.sleep(0.02)

    def join(self) -> None:
        """Waits until the log has been read to its end."""
        self._reader.join(10)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serving(
    tmp_path: Path, settings: str, *options: str, ready: bool = True, module: Sequence[str] = ("tracescore.cli.main",)
) -> Iterator[Running]:
    """`tracescore serve` with `settings` (YAML) until the block is left; `module` runs it, with its first arguments."""
    file = tmp_path / "tracescore.yaml"
    file.write_text(settings)
    process = subprocess.Popen(
        [sys.executable, "-m", *module, "serve", "-c", str(file), *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    running = Running(process)
    try:
        if ready:
            running.wait_listening()
        yield running
    finally:
        process.kill()
        process.wait()
        running.join()
        if process.stderr is not None:
            process.stderr.close()
