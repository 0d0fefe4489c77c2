"""The way back below the API: everything is in etcd as it was in instar."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.tools.adopter.adopt import adopt
from instar.tools.adopter.etcd_objects import EtcdObjects
from instar.tools.adopter.move import MoveOptions
from instar.tools.adopter.return_group import give_back
from instar.wire.storage.etcd.store import EtcdStore
from tests.storage.etcd_server import EtcdCluster
from tests.support.adoption import MERGE, V1, V2, MovableCluster, movable_cluster


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as found:
        yield found


def _moved(cluster: MovableCluster, etcd: EtcdCluster, *, back: bool) -> Any:
    async def run() -> Any:
        store = EtcdStore(etcd.addresses)
        async with cluster.client() as client:
            options = MoveOptions(in_flight=0.05, margin=50, etcd="etcd://…")
            move = await cluster.move(client, lambda text: None, options)
            try:
                return await (give_back(move, EtcdObjects(store)) if back else adopt(move))
            finally:
                move.journal.close()
                await store.close()

    return asyncio.run(run())


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
