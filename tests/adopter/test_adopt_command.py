"""``instar adopt`` as a process: its lines, its exit codes, and a kill at any moment."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.adoption import MovableCluster, movable_cluster
from tests.support.main_cluster import GROUP


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MovableCluster]:
    with movable_cluster(tmp_path) as found:
        yield found


def _command(cluster: MovableCluster, *flags: str) -> list[str]:
    ca = cluster.folder / "instar-ca.crt"
    ca.write_bytes(cluster.served.ca)
    assert cluster.request.service is not None
    namespace, name, port = cluster.request.service
    return [
        *(sys.executable, "-m", "instar", "adopt", GROUP),
        *("--kubeconfig", str(cluster.main.kubeconfig), "--api-server", cluster.main.url),
        *("--instar-service", f"{namespace}/{name}:{port}", "--ca-file", str(ca)),
        *("--journal", str(cluster.folder / "journal.json"), "--in-flight", "0.05s", *flags),
    ]


def _run(cluster: MovableCluster, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(cluster, *flags), capture_output=True, text=True, check=False)


def test_a_group_goes_and_comes_back(cluster: MovableCluster) -> None:
    before = cluster.objects()

    forth = _run(cluster)
    moved = cluster.stored_by_instar()
    plan = _run(cluster, "--return", "--plan", "-o", "json")
    back = _run(cluster, "--return")

    assert (forth.returncode, plan.returncode, back.returncode) == (0, 0, 0), forth.stderr
    assert moved
    assert not cluster.stored_by_instar()
    assert json.loads(plan.stdout)["plan"]["objects"] == {f"reports.{GROUP}": 3}
    assert "verify: every object is as it was, at every version" in forth.stdout
    assert cluster.objects() == before


def test_a_plan_without_the_api_of_instar_says_how_to_get_it(cluster: MovableCluster) -> None:
    planned = _run(cluster, "--plan")

    assert planned.returncode == 1
    assert "deploy/in-cluster/adopt.yaml" in planned.stderr
    assert "Traceback" not in planned.stderr


def test_a_group_without_crds_is_one_line(cluster: MovableCluster) -> None:
    command = _command(cluster)
    command[command.index(GROUP)] = "none.example.com"

    refused = subprocess.run(command, capture_output=True, text=True, check=False)

    assert refused.returncode == 1
    assert refused.stderr == "instar adopt: the cluster has no CRD of the group none.example.com\n"


@pytest.mark.parametrize("line", ["copy:", "freeze:", "reconcile:", "route:", "unfreeze:"])
def test_a_process_that_is_killed_is_run_again(cluster: MovableCluster, line: str) -> None:
    before = cluster.objects()
    with subprocess.Popen(_command(cluster), stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        for told in first.stdout:
            if told.startswith(line):
                first.send_signal(signal.SIGKILL)
                break
    assert first.returncode == -signal.SIGKILL

    second = _run(cluster)

    assert second.returncode == 0, second.stderr
    assert cluster.objects() == before
    assert cluster.stored_by_instar()
