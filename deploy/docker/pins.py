"""Writes base.txt and local.txt: versions and hashes of what the image installs. `python deploy/docker/pins.py`.

pip itself resolves, for each of the machines that the image is built for; nothing is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
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


def resolved(machine: str, known: dict[str, str], extra: str = "[local]") -> list[Any]:
    """What pip would install on that machine: name, version and hash of each file; `known` versions stay."""
    with tempfile.TemporaryDirectory() as folder:
        report, wanted = Path(folder) / "report.json", Path(folder) / "constraints.txt"
        wanted.write_text("".join(f"{name}=={version}\n" for name, version in known.items()))
        wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, str(ROOT)]
        subprocess.run(wheel, check=True)  # noqa: S603 - no input from outside
        (built,) = Path(folder).glob("tracescore-*.whl")
        asked = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", f"{built}{extra}"]
        of_machine = [f"--platform={each.format(machine)}" for each in PLATFORMS]
        how = ["--only-binary=:all:", "--python-version=3.11", "--target", folder, "-c", str(wanted)]
        subprocess.run([*asked, *of_machine, *how, "--report", str(report)], check=True)  # noqa: S603 - as above
        return [each for each in json.loads(report.read_text())["install"] if each["metadata"]["name"] != "tracescore"]


def name_of(each: Any) -> str:
    """As packages are compared."""
    return str(re.sub(r"[-_.]+", "-", each["metadata"]["name"].lower()))


def main() -> None:
    """Resolves for one machine after the other, with the same versions for all."""
    versions: dict[str, str] = {}
    hashes: dict[str, set[str]] = {}
    for machine in MACHINES:
        for each in resolved(machine, versions):
            versions[name_of(each)] = each["metadata"]["version"]
            digest = each["download_info"]["archive_info"]["hashes"]["sha256"]
            hashes.setdefault(name_of(each), set()).add(f"--hash=sha256:{digest}")
    base = {name_of(each) for each in resolved(MACHINES[0], versions, "")}
    for file, names in (("base.txt", base), ("local.txt", set(versions) - base)):
        lines = (" ".join([f"{name}=={versions[name]}", *sorted(hashes[name])]) for name in sorted(names))
        Path(__file__).with_name(file).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
