"""What a process costs that receives nothing: `python -m tests.benchmarks.idle [SECONDS]`.

The CPU time of all threads of `tracescore serve`, by the kernel's nanoseconds: ticks of 10 ms miss what is short.
Beside it stands a bare uvicorn, which is a third of the servers in one of ours.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.running import FREE_PORTS, serving
from tests.servers import free_port

AIMS = {"embedded judge": 0.5, "judge away": 1.0, "with a spool": 0.5}
"""Per cent of a core at most."""
_SETTLE = 15.0
"""Seconds after which the start is over."""

_BARE = """
import uvicorn
async def app(scope, receive, send): ...
uvicorn.run(app, port={port}, lifespan="off", log_level="critical")
"""


def cpu_of(pid: int) -> float:
    """Seconds that all threads of a process have run."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@contextmanager
def _bare() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", _BARE.format(port=free_port())])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def measure(seconds: float) -> dict[str, float]:
    """Per cent of a core by case, all of them in the same time."""
    away = f'judge: {{kind: openai, base_url: "http://127.0.0.1:{free_port()}/v1", model: m}}\n'
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        spool = f'spool: {{path: "{folder / "spool.db"}"}}\n'
        pids = {"bare uvicorn": stack.enter_context(_bare())}
        for case, settings in zip(AIMS, ("", away, spool), strict=True):
            (folder / case).mkdir()
            pids[case] = stack.enter_context(serving(folder / case, FREE_PORTS + settings)).process.pid
        time.sleep(_SETTLE)
        before = {case: cpu_of(pid) for case, pid in pids.items()}
        time.sleep(seconds)
        return {case: 100 * (cpu_of(pid) - before[case]) / seconds for case, pid in pids.items()}


def main(seconds: float) -> None:
    """Prints the table."""
    print(f"{'idle':16} {'% of a core':>12}")
    for case, value in measure(seconds).items():
        print(f"{case:16} {value:12.2f}" + (f"   (aim: {AIMS[case]})" if case in AIMS else ""))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30)
