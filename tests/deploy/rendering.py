"""Kustomizations as a real kubectl renders them."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kubectl import MISSING, kubectls

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BASES = sorted(file.parent.name for file in DEPLOY.rglob("kustomization.yaml"))


def needs_kubectl() -> None:
    if not kubectls():
        pytest.skip(MISSING)


@cache
def rendered(base: str) -> tuple[dict[str, Any], ...]:
    """All objects of a base."""
    needs_kubectl()
    done = subprocess.run(
        [kubectls()[0], "kustomize", str(DEPLOY / base)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(base: str, kind: str) -> dict[str, Any]:
    [found] = [each for each in rendered(base) if each["kind"] == kind]
    return found


def workload(base: str) -> dict[str, Any]:
    kinds = ("StatefulSet", "Deployment", "Job")
    [found] = [each for each in rendered(base) if each["kind"] in kinds]
    return found


def container(base: str) -> dict[str, Any]:
    [found] = workload(base)["spec"]["template"]["spec"]["containers"]
    return dict(found)
