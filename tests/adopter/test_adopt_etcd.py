"""The way back below the API: everything is in etcd as it was in instar."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from instar.tools.adopter.adopt import adopt
from instar.tools.adopter.adoption_client import AdoptionClient
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.etcd_objects import EtcdObjects
from instar.tools.adopter.etcd_removal import free_etcd
from instar.tools.adopter.move import GroupMove, MoveOptions, Tell
from instar.tools.adopter.preflight import look
from instar.tools.adopter.return_group import give_back
from instar.wire.storage.etcd.store import EtcdStore
from tests.storage.etcd_server import EtcdCluster
from tests.support.adoption import MERGE, V1, V2, MovableCluster, movable_cluster, run_as_command
from tests.support.main_cluster import GROUP, report
from tests.support.waiting import eventually


@pytest.fixture
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as found:
        yield found


Work = Callable[[GroupMove, EtcdObjects], Awaitable[Any]]


def _run(cluster: MovableCluster, etcd: EtcdCluster, work: Work, tell: Tell = print) -> Any:
    async def run() -> Any:
        store = EtcdStore(etcd.addresses)
        async with cluster.client() as client:
            options = MoveOptions(in_flight=0.05, margin=50, etcd="etcd://…")
            move = await cluster.move(client, tell, options)
            try:
                return await work(move, EtcdObjects(store))
            finally:
                move.journal.close()
                await store.close()

    return run_as_command(run())


def _moved(cluster: MovableCluster, etcd: EtcdCluster, *, back: bool) -> Any:
    return _run(cluster, etcd, give_back if back else lambda move, _: adopt(move))


def _free(move: GroupMove, etcd: EtcdObjects) -> Awaitable[None]:
    return free_etcd(move, etcd, only_plan=False)


def _keys_in_etcd(etcd: EtcdCluster) -> set[str]:
    async def read() -> set[str]:
        store = EtcdStore(etcd.addresses)
        prefix = f"{GROUP}/reports/default/"
        try:
            return {
                record.key.removeprefix(prefix) for record in (await store.range(prefix)).records
            }
        finally:
            await store.close()

    return asyncio.run(read())


def test_objects_come_back_with_uid_times_and_generation(tmp_path: Path, etcd: EtcdCluster) -> None:
    with movable_cluster(tmp_path, storage=f"etcd://{etcd.addresses[0]}") as cluster:
        assert _moved(cluster, etcd, back=False) == []
        cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)
        cluster.main.request("DELETE", f"{V1}/b")
        cluster.create("new")
        listed = cluster.main.request("GET", V1).json["metadata"]["resourceVersion"]
        before = (cluster.objects(V1), cluster.objects(V2))

        assert _moved(cluster, etcd, back=True) == []

        assert (cluster.objects(V1), cluster.objects(V2)) == before
        assert not cluster.stored_by_instar()
        now = cluster.main.request("GET", V1).json["metadata"]["resourceVersion"]
        assert int(now) > int(listed)
        cluster.create("after")


def test_an_object_deleted_while_it_is_copied_is_not_in_etcd(
    tmp_path: Path, etcd: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = AdoptionClient.keys
    with movable_cluster(tmp_path, storage=f"etcd://{etcd.addresses[0]}") as cluster:
        assert _moved(cluster, etcd, back=False) == []
        cluster.create("short")

        async def deleted_before(adoption: AdoptionClient, plural: str) -> dict[str, int]:
            cluster.main.request("DELETE", f"{V1}/short")  # after the first pages were written
            return await keys(adoption, plural)

        monkeypatch.setattr(AdoptionClient, "keys", deleted_before)

        assert _moved(cluster, etcd, back=True) == []

        assert "short" not in cluster.objects()


def test_freed_objects_are_in_instar_alone_and_go_back_whole(
    tmp_path: Path, etcd: EtcdCluster
) -> None:
    with _durable(tmp_path, etcd) as cluster:
        assert _moved(cluster, etcd, back=False) == []
        cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)
        cluster.main.request("DELETE", f"{V1}/b")
        cluster.create("new")
        before = (cluster.objects(V1), cluster.objects(V2))

        _run(cluster, etcd, lambda move, found: free_etcd(move, found, only_plan=True))
        looked = _keys_in_etcd(etcd)
        _run(cluster, etcd, _free)

        assert looked == {"a", "b", "held"}
        assert _keys_in_etcd(etcd) == set()
        assert (cluster.objects(V1), cluster.objects(V2)) == before
        assert _moved(cluster, etcd, back=True) == []
        assert (cluster.objects(V1), cluster.objects(V2)) == before
        assert not cluster.stored_by_instar()


def test_a_return_without_etcd_is_refused_once_etcd_is_empty(
    tmp_path: Path, etcd: EtcdCluster
) -> None:
    async def planned(move: GroupMove, found: EtcdObjects) -> list[str]:
        options = MoveOptions(in_flight=0.05, accept_new_uids=True)
        return (await look(replace(move, options=options), back=True)).obstacles

    with _durable(tmp_path, etcd) as cluster:
        assert _moved(cluster, etcd, back=False) == []
        before = _run(cluster, etcd, planned)
        _run(cluster, etcd, _free)
        after = _run(cluster, etcd, planned)

    assert before == []
    assert ["--etcd" in each for each in after] == [True]


def test_what_instar_does_not_have_stays_in_etcd(tmp_path: Path, etcd: EtcdCluster) -> None:
    async def stray(move: GroupMove, found: EtcdObjects) -> None:
        (crd,) = move.group.crds
        other = {**report("late"), "metadata": {"name": "late", "uid": "of-a-late-write"}}
        await found.put(crd, [("default/late", other)])

    with _durable(tmp_path, etcd) as cluster:
        assert _moved(cluster, etcd, back=False) == []
        _run(cluster, etcd, stray)

        with pytest.raises(AdoptError, match=r"1 object .*default/late; nothing was removed"):
            _run(cluster, etcd, _free)

    assert _keys_in_etcd(etcd) == {"a", "b", "held", "late"}


def test_objects_in_memory_alone_do_not_replace_those_in_etcd(
    tmp_path: Path, etcd: EtcdCluster
) -> None:
    with movable_cluster(tmp_path, storage=f"etcd://{etcd.addresses[0]}") as cluster:
        with pytest.raises(AdoptError, match="is not adopted"):
            _run(cluster, etcd, _free)
        assert _moved(cluster, etcd, back=False) == []
        with pytest.raises(AdoptError, match="in memory alone"):
            _run(cluster, etcd, _free)

    assert _keys_in_etcd(etcd) == {"a", "b", "held"}


def test_the_etcd_of_another_cluster_is_refused(
    tmp_path: Path, etcd: EtcdCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    with (
        movable_cluster(tmp_path, storage=f"etcd://{etcd.addresses[0]}") as cluster,
        EtcdCluster(other, members=1) as foreign,
        pytest.raises(AdoptError, match="no CRD reports"),
    ):
        _run(cluster, foreign, lambda move, found: found.must_be_of(move.group))


class _Killed(BaseException):
    """The process ends here."""


def test_a_killed_return_below_the_api_is_finished_by_the_next_run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    number, killed = 0, True
    while killed:
        number += 1
        told = 0

        def tell(text: str) -> None:
            nonlocal told
            told += 1
            if told == number:  # noqa: B023 - called within this turn
                raise _Killed

        with (
            EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as etcd,
            movable_cluster(
                tmp_path / str(number), storage=f"etcd://{etcd.addresses[0]}"
            ) as cluster,
        ):
            assert _moved(cluster, etcd, back=False) == []
            cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)
            cluster.main.request("DELETE", f"{V1}/b")
            cluster.create("new")
            before = (cluster.objects(V1), cluster.objects(V2))
            try:
                _run(cluster, etcd, give_back, tell)
                killed = False
            except _Killed:
                assert _run(cluster, etcd, give_back) == []
            assert (cluster.objects(V1), cluster.objects(V2)) == before
            assert not cluster.stored_by_instar()
            eventually(partial(_writable, cluster))
    assert number > 8  # each step was one of them


@pytest.mark.parametrize("line", ["revision:", "etcd:", "freeze:", "flip:", "unfreeze:"])
def test_a_returning_process_that_is_killed_is_run_again(
    tmp_path: Path, etcd: EtcdCluster, line: str
) -> None:
    with movable_cluster(tmp_path, storage=f"etcd://{etcd.addresses[0]}") as cluster:
        assert _moved(cluster, etcd, back=False) == []
        cluster.main.request("PATCH", f"{V1}/a", {"spec": {"size": 9}}, content_type=MERGE)
        cluster.main.request("DELETE", f"{V1}/b")
        cluster.create("new")
        before = (cluster.objects(V1), cluster.objects(V2))
        command = [
            *(sys.executable, "-m", "instar", "adopt", GROUP, "--return", "--in-flight", "0.05s"),
            *("--kubeconfig", str(cluster.main.kubeconfig), "--api-server", cluster.main.url),
            *("--journal", str(tmp_path / "return.json")),
            *("--etcd", f"etcd://{etcd.addresses[0]}"),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout is not None
            for told in first.stdout:
                if told.startswith(line):
                    first.send_signal(signal.SIGKILL)
                    break

        second = subprocess.run(command, capture_output=True, text=True, check=False)

        assert first.returncode == -signal.SIGKILL
        assert second.returncode == 0, second.stdout + second.stderr
        assert (cluster.objects(V1), cluster.objects(V2)) == before
        assert not cluster.stored_by_instar()
        eventually(partial(_writable, cluster))


def _writable(cluster: MovableCluster) -> bool:
    return cluster.main.request("POST", f"{V1}?dryRun=All", report("try")).status == 201


@contextmanager
def _durable(folder: Path, etcd: EtcdCluster) -> Iterator[MovableCluster]:
    """The main cluster on etcd, instar on a file."""
    storage = f"sqlite:{folder}/instar.db"
    with movable_cluster(
        folder, storage=f"etcd://{etcd.addresses[0]}", served_storage=storage
    ) as found:
        yield found
