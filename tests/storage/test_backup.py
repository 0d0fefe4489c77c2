"""``instar storage backup`` and ``restore``: of a server that is running, of etcd, of a file."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.cli.main import main
from instar.tools.backups import DamagedBackup, check_etcd
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Unavailable, Write
from instar.wire.storage.verify import verify_file
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import LiveServer, live_server

TALKATIVE = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"color": "green"}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[LiveServer]:
    with live_server(storage=f"sqlite:{folder / 's.db'}", strict_namespaces=False) as running:
        body = {**TALKATIVE, "metadata": {"name": "settings"}}
        assert running.request("POST", "/api/v1/namespaces/default/configmaps", body).status == 201
        yield running


def storage(*words: str) -> int:
    try:
        return main(["storage", *words])
    except SystemExit as left:
        return int(left.code or 0)


def copies(folder: Path) -> list[Path]:
    return list(folder.glob("*.backup-*"))


@pytest.mark.anyio
async def test_a_copy_is_one_moment_of_a_store_that_is_written_meanwhile(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    for number in range(300):
        await store.commit(Write(f"g/p/{number:04}", b"{}", 0))

    async def write() -> None:
        for number in range(300, 900):
            await store.commit(Write(f"g/p/{number:04}", b"{}", 0))

    writing = asyncio.create_task(write())
    copy = await store.backup()
    await writing
    await store.close()

    # Revisions without a hole: nothing later is there without everything before it.
    opened = SqliteStore(str(copy))
    page = await opened.range("")
    await opened.close()
    assert 300 <= len(page.records) <= 900
    first = page.records[0].revision
    assert [record.revision - first for record in page.records] == [*range(len(page.records))]


@pytest.mark.anyio
async def test_one_copy_is_made_at_a_time_and_a_cancelled_one_is_removed(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    first = asyncio.create_task(store.backup())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="another backup"):
        await store.backup()

    first.cancel()
    await asyncio.wait([first])
    await store.close()

    assert copies(tmp_path) == []


@pytest.mark.anyio
async def test_copies_of_a_killed_process_are_removed_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "s.db.backup-killed").write_bytes(b"half")

    await SqliteStore(str(tmp_path / "s.db")).close()

    assert copies(tmp_path) == []


def test_a_running_server_is_backed_up_and_restored(
    server: LiveServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = storage("backup", "b.db", "--kubeconfig", str(server.kubeconfig))

    assert code == 0, capsys.readouterr().err
    assert "verified" in capsys.readouterr().out
    assert storage("restore", "b.db", "sqlite:r.db") == 0
    with live_server(storage=f"sqlite:{folder / 'r.db'}") as restored:
        answer = restored.request("GET", "/api/v1/namespaces/default/configmaps/settings")
    assert answer.json["data"] == TALKATIVE["data"]
    assert os.stat(folder / "b.db").st_mode & 0o077 == 0, "it has every Secret"
    assert {path.name for path in folder.glob("[.b]*")} == {"b.db"}, "no file is left beside it"


def test_a_backup_needs_the_right_to_post_and_is_no_get(server: LiveServer) -> None:
    viewer = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "console-viewer"},
        "rules": [{"nonResourceURLs": ["/instar/*"], "verbs": ["get"]}],
    }
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "viewers"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "console-viewer",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    access = "/apis/rbac.authorization.k8s.io/v1"
    assert server.request("POST", f"{access}/clusterroles", viewer).status == 201
    assert server.request("POST", f"{access}/clusterrolebindings", bound).status == 201
    as_jane = {"Impersonate-User": "jane"}

    asked = server.request("POST", "/instar/backup", headers=as_jane)
    read = server.request("GET", "/instar/backup", headers=as_jane)

    assert (asked.status, read.status) == (403, 405)


def test_a_server_in_memory_says_what_to_use_instead(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with live_server() as server:
        code = storage("backup", "b.db", "--kubeconfig", str(server.kubeconfig))

    assert code == 1
    assert "instar snapshot" in capsys.readouterr().err
    assert not list(folder.glob("*b.db*"))


def test_a_store_in_use_tells_both_ways_out(
    server: LiveServer, capsys: pytest.CaptureFixture[str]
) -> None:
    # Another process: SQLite's locks are none within one.
    verify = [sys.executable, "-m", "instar", "storage", "verify", "s.db"]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    code = storage("copy", "sqlite:s.db", "sqlite:x.db")

    assert (done.returncode, code) == (1, 1)
    for told in (done.stderr, capsys.readouterr().err):
        assert "instar storage backup" in told
        assert "--stop" in told


@pytest.mark.parametrize("damage", ["cut", "garbled", "foreign"])
def test_a_damaged_backup_is_refused_and_nothing_is_written(
    damage: str, server: LiveServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert storage("backup", "b.db", "--kubeconfig", str(server.kubeconfig)) == 0
    whole = (folder / "b.db").read_bytes()
    at = whole.index(b'{"apiVersion')
    spoilt = {
        "cut": whole[: len(whole) // 2],
        "garbled": whole[:at] + b"?" * 200 + whole[at + 200 :],
        "foreign": b"SQLite format 3\0" + bytes(500),
    }
    (folder / "b.db").write_bytes(spoilt[damage])

    code = storage("restore", "b.db", "sqlite:r.db")

    assert code in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(folder.glob("*r.db*"))


def test_neither_a_backup_nor_a_store_is_overwritten(
    server: LiveServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("backup", "b.db", "--kubeconfig", str(server.kubeconfig))
    assert storage(*words) == 0

    codes = [storage(*words), storage("restore", "b.db", "sqlite:s.db"), storage(*words, "--force")]

    assert codes == [2, 2, 0]
    assert "exists already" in capsys.readouterr().err


def test_etcd_gives_a_snapshot_whose_checksum_is_compared(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EtcdCluster(folder, members=1) as cluster:
        url = f"etcd://{cluster.addresses[0]}/registry"
        code = storage("backup", url, "snapshot.db")

    assert code == 0, capsys.readouterr().err
    assert check_etcd(folder / "snapshot.db")
    damaged = bytearray((folder / "snapshot.db").read_bytes())
    damaged[4096] ^= 1
    (folder / "snapshot.db").write_bytes(damaged)
    with pytest.raises(DamagedBackup, match="checksum"):
        check_etcd(folder / "snapshot.db")


@pytest.mark.parametrize("words", [("postgresql://h/d", "f"), ("restore", "f", "etcd://h")])
def test_stores_with_tools_of_their_own_name_them(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words if words[0] == "restore" else ("backup", *words)

    assert storage(*words) == 2

    told = capsys.readouterr().err
    assert "pg_dump" in told or "etcdutl snapshot restore" in told


def test_a_copy_of_a_running_server_is_sound(server: LiveServer, folder: Path) -> None:
    assert storage("backup", "b.db", "--kubeconfig", str(server.kubeconfig)) == 0

    assert verify_file("b.db", lambda key, value: value.startswith(b"{")).problems == []
