"""What is installed is what is here: the wheel, built without a network."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from configparser import ConfigParser
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    files = (path for path in (ROOT / "tracescore").rglob("*") if path.is_file() and path.suffix != ".pyc")
    here = {path for path in files if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)}
    assert {".md", ".txt", ".html", ".css"} <= {path.suffix for path in here}, "prompts, word lists and the page"
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == {path.relative_to(ROOT).as_posix() for path in here}


def test_the_command_that_is_installed_can_be_run(wheel: zipfile.ZipFile) -> None:
    (file,) = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    scripts = ConfigParser()
    scripts.read_string(wheel.read(file).decode())
    assert list(scripts["console_scripts"]) == ["tracescore"]
    assert callable(EntryPoint("tracescore", scripts["console_scripts"]["tracescore"], "console_scripts").load())
