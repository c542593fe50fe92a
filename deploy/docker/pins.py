"""Writes base.txt, local.txt and build.txt: versions and hashes of what the image installs and is built with.

`python deploy/docker/pins.py`. pip itself resolves, for each of the machines that the image is built for; nothing is
installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MACHINES = ("x86_64", "aarch64")
PLATFORMS = (
    "manylinux2014_{0}",
    "manylinux_2_17_{0}",
    "manylinux_2_24_{0}",
    "manylinux_2_28_{0}",
    "manylinux_2_34_{0}",
)


def resolved(wanted: str, machine: str, known: dict[str, str]) -> list[Any]:
    """What pip would install for a requirement on that machine: name, version and hash of each file.

    `known` versions stay.
    """
    with tempfile.TemporaryDirectory() as folder:
        report, constraints = Path(folder) / "report.json", Path(folder) / "constraints.txt"
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in known.items()))
        asked = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", wanted]
        of_machine = [f"--platform={each.format(machine)}" for each in PLATFORMS]
        how = ["--only-binary=:all:", "--python-version=3.11", "--target", folder, "-c", str(constraints)]
        subprocess.run([*asked, *of_machine, *how, "--report", str(report)], check=True)  # noqa: S603 - no input from outside
        return [each for each in json.loads(report.read_text())["install"] if each["metadata"]["name"] != "tracescore"]


@contextmanager
def built() -> Iterator[Path]:
    """A wheel of this project."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, str(ROOT)]
        subprocess.run(wheel, check=True)  # noqa: S603 - no input from outside
        yield next(Path(folder).glob("tracescore-*.whl"))


def name_of(each: Any) -> str:
    """As packages are compared."""
    return str(re.sub(r"[-_.]+", "-", each["metadata"]["name"].lower()))


def main() -> None:
    """Resolves for one machine after the other, with the same versions for all."""
    versions: dict[str, str] = {}
    hashes: dict[str, set[str]] = {}

    def names(wanted: str, *machines: str) -> set[str]:
        found = set()
        for machine in machines:
            for each in resolved(wanted, machine, versions):
                found.add(name_of(each))
                versions[name_of(each)] = each["metadata"]["version"]
                digest = each["download_info"]["archive_info"]["hashes"]["sha256"]
                hashes.setdefault(name_of(each), set()).add(f"--hash=sha256:{digest}")
        return found

    with built() as wheel:
        local = names(f"{wheel}[local]", *MACHINES)
        base = names(str(wheel), MACHINES[0])
    (build,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for file, held in (("base.txt", base), ("local.txt", local - base), ("build.txt", names(build, MACHINES[0]))):
        lines = (" ".join([f"{name}=={versions[name]}", *sorted(hashes[name])]) for name in sorted(held))
        Path(__file__).with_name(file).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
