"""docs/how-to/python-models.md: generated code is as shown, snippets run as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.server import LiveServer, live_server

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "python-models.md").read_text()
BACKUPS = ROOT / "examples" / "types" / "backups.yaml"
PATH = "/apis/storage.example.com/v1/namespaces/default/backups"
OBJECT = {
    "apiVersion": "storage.example.com/v1",
    "kind": "Backup",
    "metadata": {"name": "nightly"},
    "spec": {"schedule": "0 3 * * *", "from": {"claim": "data"}, "mode": "Full"},
}


def _snippet(name: str) -> str:
    match = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None
    return match.group(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(BACKUPS, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as running:
        running.create_crd(yaml.safe_load(BACKUPS.read_text()))
        yield running


def _run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        list(words),
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _models(folder: Path, style: str) -> None:
    words = ("types", "backups.yaml", "--python", style, "-o", "backup.py")
    assert _run(folder, "instar", *words).returncode == 0


def test_the_code_on_the_page_is_what_the_command_writes(folder: Path) -> None:
    _models(folder, "pydantic")

    assert (folder / "backup.py").read_text().endswith(f"\n\n\n{_snippet('generated')}")


def test_classes_by_hand_become_a_crd_a_server_takes(folder: Path, server: LiveServer) -> None:
    (folder / "queues.py").write_text(_snippet("handwritten"))

    done = _run(folder, "bash", "-ec", _snippet("to-crd"))

    assert done.returncode == 0, done.stderr
    made = server.create_crd(yaml.safe_load((folder / "queues.yaml").read_text()))
    assert [each["name"] for each in made["spec"]["versions"] if each["storage"]] == ["v1"]


def test_the_converter_works_on_parts(folder: Path) -> None:
    assert _run(folder, "bash", "-ec", _snippet("partial")).returncode == 0
    (folder / "conversions.py").write_text(_snippet("converter"))
    (folder / "part.yaml").write_text(yaml.safe_dump({**OBJECT, "spec": {"mode": "Full"}}))

    done = _run(
        folder,
        *("instar", "convert", "--converter", "conversions:backups", "--to", "v2", "part.yaml"),
    )

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["spec"] == {"mode": "full"}


def test_kr8s_and_lightkube_speak_in_models(folder: Path, server: LiveServer) -> None:
    config = str(server.kubeconfig)
    _models(folder, "pydantic")
    kr8s = _run(folder, sys.executable, "-c", _snippet("kr8s"), KUBECONFIG=config)
    _models(folder, "msgspec")
    lightkube = _run(folder, sys.executable, "-c", _snippet("lightkube"), KUBECONFIG=config)

    assert kr8s.stdout == "data Full\n", kr8s.stderr
    assert lightkube.stdout == "7\n", lightkube.stderr


def test_a_kopf_operator_reads_bodies_as_models(folder: Path, server: LiveServer) -> None:
    _models(folder, "pydantic")
    (folder / "operator_.py").write_text(_snippet("kopf"))
    body = {**OBJECT, "metadata": {"name": "weekly"}, "spec": {**OBJECT["spec"], "keep": 5}}  # type: ignore[dict-item]
    assert server.request("POST", PATH, body).status == 201
    words = ("-m", "kopf", "run", "--standalone", "--namespace=default", "operator_.py")
    operator = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert _copies(server) == 5
    finally:
        operator.terminate()
        operator.wait(30)


def _copies(server: LiveServer) -> int | None:
    """Watched until the operator has written it."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = server.request("GET", f"{PATH}/weekly").json.get("status", {}).get("copies")
        if found is not None:
            return int(found)
        time.sleep(0.1)
    return None
