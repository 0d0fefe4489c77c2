"""What instar offers for its objects works for those of an adopted group."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from instar.tools.adopter.adopt import adopt
from tests.support.adoption import MERGE, V1, MovableCluster, movable_cluster, run_as_command
from tests.support.main_cluster import GROUP

_CRD = f"reports.{GROUP}"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MovableCluster]:
    storage = f"sqlite:{tmp_path}/instar.db"
    with movable_cluster(tmp_path, served_storage=storage) as found:

        async def moved() -> None:
            async with found.client() as client:
                move = await found.move(client, lambda text: None)
                assert await adopt(move) == []
                move.journal.close()

        run_as_command(moved())
        yield found


def _instar(kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "instar", *words],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
    )


def test_history_begins_with_the_adoption(cluster: MovableCluster) -> None:
    cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)

    shown = _instar(cluster.served.kubeconfig, "history", _CRD, "a")

    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("revision")] == [
        "earliest",
        "update",
    ]
    assert any("size: 9" in line for line in lines)


def test_an_object_that_was_deleted_since_the_adoption_is_restored(
    cluster: MovableCluster,
) -> None:
    before = cluster.objects()["b"]
    cluster.main.request("DELETE", f"{V1}/b")

    done = _instar(cluster.served.kubeconfig, "restore", _CRD, "b")

    assert done.returncode == 0, done.stderr
    assert cluster.objects()["b"]["spec"] == before["spec"]


def test_a_rehearsal_reads_the_objects_that_instar_has(
    cluster: MovableCluster, tmp_path: Path
) -> None:
    cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 99}}, content_type=MERGE)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_CRD}"
    found = cluster.main.request("GET", path).json
    for version in found["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["size"]["maximum"] = 50
    file = tmp_path / "after.yaml"
    named = {key: found[key] for key in ("apiVersion", "kind", "spec")}
    file.write_text(yaml.safe_dump({**named, "metadata": {"name": _CRD}}))

    reviewed = _instar(cluster.main.kubeconfig, "review", "kube:", str(file))
    rehearsed = _instar(cluster.main.kubeconfig, "rehearse", "--from", "kube:", "--to", str(file))

    assert (reviewed.returncode, rehearsed.returncode) == (1, 1), rehearsed.stderr
    assert "3 objects of 1 CRD" in rehearsed.stdout
    assert "default/a" in rehearsed.stdout
    assert "default/b" not in rehearsed.stdout
