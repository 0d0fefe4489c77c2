"""Two replicas of instar on one store: an adoption through one of them is one for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from instar.server.settings import ClusterSettings
from instar.tools.adopter.adopt import adopt
from instar.tools.adopter.return_group import give_back
from tests.storage.etcd_server import EtcdCluster
from tests.support.adoption import MERGE, V1, MovableCluster, movable_cluster, run_as_command
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually


@contextmanager
def _replicas(folder: Path, etcd: str) -> Iterator[tuple[MovableCluster, LiveServer]]:
    storage = f"etcd://{etcd}/instar"
    with movable_cluster(folder, served_storage=storage) as cluster:
        joined = ClusterSettings(kubeconfig=str(cluster.main.kubeconfig))
        with live_server(cluster=joined, cert_dir=folder / "second", storage=storage) as second:
            yield cluster, second


@pytest.fixture
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as found:
        yield found.addresses[0]


def _moved(cluster: MovableCluster, *, back: bool) -> Any:
    async def moved() -> Any:
        async with cluster.client() as client:
            move = await cluster.move(client, lambda text: None)
            try:
                return await (give_back(move, None) if back else adopt(move))
            finally:
                move.journal.close()

    return run_as_command(moved())


def test_history_begins_at_the_same_revision_at_both(tmp_path: Path, etcd: str) -> None:
    with _replicas(tmp_path, etcd) as (cluster, second):
        before = cluster.main.request("GET", V1).json["metadata"]["resourceVersion"]
        assert _moved(cluster, back=False) == []
        eventually(lambda: second.request("GET", V1).status == 200)

        shown = second.request("GET", V1).json
        watched = second.request(
            "GET", f"{V1}?watch=true&timeoutSeconds=1&resourceVersion={before}"
        )

        assert {item["metadata"]["name"] for item in shown["items"]} == {"a", "b", "held"}
        assert int(shown["metadata"]["resourceVersion"]) > int(before)
        assert watched.json["object"]["code"] == 410


def test_a_write_at_one_replica_goes_back_from_the_other(tmp_path: Path, etcd: str) -> None:
    with _replicas(tmp_path, etcd) as (cluster, second):
        assert _moved(cluster, back=False) == []
        path = f"{V1}/a"
        eventually(lambda: second.request("GET", path).status == 200)
        written = second.request("PATCH", path, {"spec": {"size": 7}}, content_type=MERGE)

        read = cluster.main.request("GET", path).json
        back = _moved(cluster, back=True)

        assert written.status == 200, written.text
        assert read["spec"] == {"size": 7}
        assert back == []
        assert cluster.objects()["a"]["spec"] == {"size": 7}
