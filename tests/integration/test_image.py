"""The image, built from the Dockerfile and run: as nobody special, on a root that cannot be written.

Built by buildah, without a registry: what stands for the base image is a Debian 12 with its own Python 3.11, under the
base image's name. There is no container engine either: a mount namespace in which the image's files are read-only,
and chroot as the image's user, are what one would do with `--read-only`. The target `base` alone: `local` differs by
packages that the other tests have.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from tests.live import GOOD, SETTINGS
from tests.openai_server import openai_server
from tests.running import FREE_PORTS, Running
from tests.sample_app import answer, provider
from tests.servers import binary, cannot_run

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

SOURCE = Path(__file__).parents[2]
CONFIG = "/etc/tracescore/tracescore.yaml"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
STAND_IN = """\
FROM scratch
ADD base.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
RUN = f"""\
mount --bind "$1" "$1"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1{CONFIG}"
mount -o remount,bind,ro "$1"
root=$1 user=$3
shift 3
exec chroot --userspec="$user:$user" "$root" env -i "$@"
"""


@dataclass(frozen=True)
class Image:
    """An image whose files lie under `root`; `config` says how it is to be run."""

    root: Path
    config: dict[str, Any]

    def command(self, settings: Path) -> list[str]:
        """What runs it, with `settings` mounted over its configuration."""
        namespace = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", RUN, "sh"]
        started = [*self.config["Env"], *self.config["Entrypoint"], *self.config["Cmd"]]
        return [*namespace, str(self.root), str(settings), self.config["User"], *started]

    @contextmanager
    def running(self, settings: Path) -> Iterator[Running]:
        """The service in the image."""
        process = subprocess.Popen(self.command(settings), stderr=subprocess.PIPE, text=True)
        service = Running(process)
        try:
            service.wait_listening()
            yield service
        finally:
            process.kill()
            process.wait()
            service.join()
            assert process.stderr is not None
            process.stderr.close()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.geteuid() != 0:
        cannot_run("building an image without a container engine needs root")
    folder = tmp_path_factory.mktemp("image")
    buildah = [binary("buildah"), f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}"]

    def call(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout.strip()

    try:
        _build_stand_in(folder, buildah, call)
        trusted = ["-v", f"{CERTIFICATES}:{CERTIFICATES}:ro"] if CERTIFICATES.exists() else []
        asked = [f"--env={name}={os.environ[name]}" for name in ("PIP_CERT", "PIP_INDEX_URL") if name in os.environ]
        build = ["bud", "--isolation=chroot", "--pull-never", "--quiet", "--target=base", "--tag=tracescore:test"]
        call(*buildah, *build, *trusted, *asked, str(SOURCE))
        container = call(*buildah, "from", "--pull-never", "localhost/tracescore:test")
        root = Path(call(*buildah, "mount", container))
        described = json.loads(call(*buildah, "inspect", "--type=image", "localhost/tracescore:test"))
        yield Image(root, described["OCIv1"]["config"])
        call(*buildah, "umount", container)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # a gigabyte


def _build_stand_in(folder: Path, buildah: list[str], call: Any) -> None:
    """A small Debian with Python, under the name that the Dockerfile builds on."""
    (name,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", (SOURCE / "Dockerfile").read_text(), re.MULTILINE)
    context = folder / "base"
    context.mkdir()
    (context / "Dockerfile").write_text(STAND_IN)
    packages = "--include=ca-certificates,python3-minimal,python3-venv,python3-pip"
    debian = [binary("mmdebstrap"), "--quiet", "--mode=root", "--variant=minbase", packages, "bookworm"]
    call(*debian, str(context / "base.tar"))
    call(*buildah, "bud", "--isolation=chroot", "--quiet", f"--tag={name}", str(context))
    (context / "base.tar").unlink()


def test_it_scores_as_nobody_special_on_a_root_that_cannot_be_written(image: Image, tmp_path: Path) -> None:
    settings = tmp_path / "tracescore.yaml"
    with openai_server() as judge:
        settings.write_text(FREE_PORTS + SETTINGS.format(url=judge.url, targets=""))
        with image.running(settings) as service:
            process = Path(f"/proc/{service.process.pid}")
            users = re.findall(r"^[UG]id:\s+(.*)$", (process / "status").read_text(), re.MULTILINE)
            assert users == ["\t".join(["10001"] * 4)] * 2
            mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
            (options,) = [fields[5] for fields in mounts if fields[4] == "/"]
            assert "ro" in options.split(",")

            assert service.get("metrics", "/-/healthy") == "ok\n"
            assert service.get("metrics", "/-/ready") == "ok\n"

            app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
            answer(app.get_tracer("app"), GOOD)
            app.shutdown()
            service.wait_value(3, "tracescore_evaluations_total", outcome="scored")
            assert service.value("tracescore_completeness_weighted_score_total", service_name="shop") == 1.0

            assert service.terminate() == 0
            service.join()
            assert any("event=stopped" in line for line in service.log)


def test_without_a_configuration_of_yours_it_says_in_one_line_what_it_lacks(image: Image) -> None:
    own = image.root / CONFIG.removeprefix("/")
    done = subprocess.run(image.command(own), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "a judge of kind openai" in line
