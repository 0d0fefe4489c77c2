"""``instar storage copy`` as a user runs it: from a file to etcd and back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replicas.processes import Replica, prepare_pki
from tests.replicas.resources import path
from tests.replicas.test_consistency import create, create_crd, done
from tests.storage.etcd_server import EtcdCluster

OBJECTS = 30


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path, members=1) as cluster:
        yield cluster


def copy(source: str, target: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "instar", "storage", "copy", source, target]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def objects_of(folder: Path, name: str, storage: str, *, make: bool) -> list[object]:
    replica = Replica(folder, name, storage)
    replica.start()
    try:
        replica.until_ready()
        if make:
            create_crd(replica, "moved.io")
            for number in range(OBJECTS):
                create(replica, "moved.io", f"n{number:02}", count=number)
        items = done(replica.request("GET", path("moved.io")))["items"]
        assert replica.stop() == 0
    finally:
        replica.kill()
    for item in items:
        del item["metadata"]["resourceVersion"]
    return list(items)


def test_everything_moves_to_etcd_and_back(tmp_path: Path, cluster: EtcdCluster) -> None:
    prepare_pki(tmp_path)
    etcd = f"etcd://{cluster.addresses[0]}/moved"
    there, back = f"sqlite:{tmp_path / 'a.db'}", f"sqlite:{tmp_path / 'b.db'}"
    made = objects_of(tmp_path, "first", there, make=True)
    assert len(made) == OBJECTS

    moved = copy(there, etcd)
    assert moved.returncode == 0, moved.stderr
    assert "copied and verified" in moved.stdout
    again = copy(there, etcd)
    assert again.returncode != 0
    assert "not empty" in again.stderr
    assert objects_of(tmp_path, "second", etcd, make=False) == made

    returned = copy(etcd, back)
    assert returned.returncode == 0, returned.stderr
    assert objects_of(tmp_path, "third", back, make=False) == made
    missing = copy(f"sqlite:{tmp_path / 'none.db'}", back)
    assert (missing.returncode, "no such file" in missing.stderr) == (2, True)
