"""Records the export of a real library against a scripted model: `python -m tests.captures.record NAME...`.

Installs the recipe's packages, pinned, in a venv (or a node_modules) of its own, runs the recipe, and writes
NAME.NNN.traces.pb, .logs.pb and NAME.expected.json. The model server and the sink listen on loopback; the recipe's
process is handed a proxy that leads nowhere, so that nothing else is reached.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from . import recipes, scene
from .expectation import NotInTheExport, expectation
from .model import Model
from .setups import Setup
from .sink import Body, Sink
from .tidy import tidied

HERE = Path(__file__).parent
_ALWAYS = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")


def setups() -> dict[str, tuple[Setup, Path]]:
    """All set-ups by name, with the recipe that records each."""
    found = {}
    for module in pkgutil.iter_modules(recipes.__path__):
        for setup in importlib.import_module(f"{recipes.__name__}.{module.name}").SETUPS:
            file = HERE / "recipes" / (setup.script or f"{module.name}.py")
            found[setup.name] = (setup, file)
    return found


def record(setup: Setup, recipe: Path, cache: Path, out: Path) -> str:
    """Records one set-up into `out`; returns a line that says what came."""
    home = cache / hashlib.sha256(" ".join(sorted(setup.packages)).encode()).hexdigest()[:12]
    versions = _npm(home, setup) if recipe.suffix == ".mjs" else _venv(home, setup)
    with Model() as model, Sink() as sink:
        for server in (model, sink):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory() as work:
            environment = _environment(model, sink, work, setup)
            done = subprocess.run(
                _command(home, recipe, setup),
                cwd=home if recipe.suffix == ".mjs" else work,
                env=environment,
                timeout=300,
                capture_output=True,
                text=True,
                check=False,
            )
        model.shutdown()
        sink.shutdown()
    places = [str(home.resolve()), str(home), work, str(HERE.parent.resolve()), str(HERE.parent)]
    bodies = [tidied(body, places) for body in sink.bodies]
    if done.returncode or not bodies:
        tail = done.stderr[-4000:]
        raise SystemExit(
            f"{setup.name}: status {done.returncode}, {len(bodies)} bodies, {len(model.asked)} requests\n{tail}"
        )
    files = _write(setup, bodies, out)
    try:
        wanted = expectation(setup, bodies, files, versions)
    except NotInTheExport as missing:
        raise SystemExit(f"{setup.name}: {missing}") from missing
    (out / f"{setup.name}.expected.json").write_text(json.dumps(wanted, indent=1, ensure_ascii=False) + "\n")
    size = sum(len(body.data) for body in bodies)
    return f"{setup.name}: {len(bodies)} requests, {size} bytes, {len(model.asked)} model calls; {versions}"


def _write(setup: Setup, bodies: Sequence[Body], out: Path) -> list[str]:
    for old in out.glob(f"{setup.name}.[0-9e]*"):
        old.unlink()
    files = [f"{setup.name}.{n:03}.{body.kind}.{body.form}" for n, body in enumerate(bodies, 1)]
    for file, body in zip(files, bodies, strict=True):
        (out / file).write_bytes(body.data)
    return files


def _environment(model: Model, sink: Sink, work: str, setup: Setup) -> dict[str, str]:
    names = ("QUESTION", "FOLLOW_UP", "FAILING", "PASSAGES", "FOUND", "NOTES", "PROMPT", "SYSTEM")
    return {
        "PATH": os.environ["PATH"],
        "HOME": work,
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(HERE.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SCENE": json.dumps({name: getattr(scene, name) for name in names}),
        "DO_NOT_TRACK": "1",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        "MODEL_URL": model.url,
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_BASE": f"{model.url}/v1",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model.url,
        "GOOGLE_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "OLLAMA_HOST": model.url,
        "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": "observatory-desk",
        **setup.env,
    }


def _command(home: Path, recipe: Path, setup: Setup) -> list[str]:
    if recipe.suffix == ".mjs":
        shutil.copy(recipe, home)
        return ["node", recipe.name, setup.mode]
    return [str(home / "bin/python"), "-m", f"record.recipes.{recipe.stem}", setup.mode]


def _venv(home: Path, setup: Setup) -> str:
    """Makes the venv unless it is there; returns the versions that run."""
    python = str(home / "bin/python")
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        tool = ["uv", "pip", "install", "--python", python] if shutil.which("uv") else [python, "-m", "pip", "install"]
        subprocess.run([*tool, "-q", *setup.packages, *_ALWAYS], check=True)
        (home / "ready").touch()
    names = [package.split("==")[0].split("[")[0] for package in setup.packages]
    ask = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return subprocess.run([python, "-c", ask, *names], check=True, capture_output=True, text=True).stdout.strip()


def _npm(home: Path, setup: Setup) -> str:
    if not (home / "ready").exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"type": "module", "private": true}')
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *setup.packages]
        subprocess.run(install, cwd=home, check=True, stdout=subprocess.DEVNULL)
        (home / "ready").touch()
    names = [package.rsplit("@", 1)[0] for package in setup.packages]
    found = [json.loads((home / "node_modules" / name / "package.json").read_text())["version"] for name in names]
    return ", ".join(f"{name} {version}" for name, version in zip(names, found, strict=True))


def main() -> None:
    """Records the named set-ups."""
    known = setups()
    parser = argparse.ArgumentParser(description="Records the OTLP export of real libraries against a scripted model.")
    parser.add_argument("names", nargs="+", choices=sorted(known), metavar="NAME", help=", ".join(sorted(known)))
    parser.add_argument("--out", type=Path, default=HERE.parent / "recorded", help="default: %(default)s")
    parser.add_argument("--cache", type=Path, default=Path(os.environ.get("RECORD_CACHE", "~/.cache/record")))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        print(record(*known[name], options.cache.expanduser(), options.out))


if __name__ == "__main__":
    main()
