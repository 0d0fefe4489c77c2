"""kubectl in front of two replicas of a three-member cluster: it cannot tell them apart."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.replicas.processes import Deployment, Replica
from tests.replicas.resources import crd, note

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here")


def kubectl(replica: Replica, home: Path, *arguments: str, data: object = None) -> str:
    done = subprocess.run(
        [
            "kubectl",
            *("--kubeconfig", str(replica.kubeconfig), "--cache-dir", str(home / replica.name)),
            *arguments,
        ],
        input=None if data is None else json.dumps(data),
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_command_may_go_to_either_replica(trio: Deployment, tmp_path: Path) -> None:
    one, other = trio.replicas
    group = "kubectl.io"
    notes = f"notes.{group}"
    told = kubectl(one, tmp_path, "apply", "-f", "-", data=crd(group))
    assert told == f"customresourcedefinition.apiextensions.k8s.io/notes.{group} created\n"
    kubectl(
        other,
        tmp_path,
        "wait",
        "--for=condition=Established",
        f"crd/notes.{group}",
        "--timeout=10s",
    )
    kubectl(other, tmp_path, "create", "namespace", "both")
    told = kubectl(one, tmp_path, "apply", "-n", "both", "-f", "-", data=note(group, "a", last="1"))
    assert told == f"note.{group}/a created\n"
    told = kubectl(
        other, tmp_path, "apply", "-n", "both", "-f", "-", data=note(group, "a", last="2")
    )
    assert told == f"note.{group}/a configured\n"
    patch = '{"spec":{"count":3}}'
    kubectl(one, tmp_path, "patch", notes, "a", "-n", "both", "--type=merge", "-p", patch)
    seen = [
        json.loads(kubectl(replica, tmp_path, "get", notes, "-n", "both", "-o", "json"))["items"]
        for replica in trio.replicas
    ]
    assert seen[0] == seen[1]
    assert seen[0][0]["spec"] == {"last": "2", "count": 3}
    kubectl(other, tmp_path, "delete", "namespace", "both", "--timeout=20s")
    assert "No resources found" not in kubectl(one, tmp_path, "get", "namespaces")
    kubectl(one, tmp_path, "delete", "crd", f"notes.{group}", "--timeout=20s")
    assert f"notes.{group}" not in kubectl(other, tmp_path, "get", "crds", "-o", "name")
