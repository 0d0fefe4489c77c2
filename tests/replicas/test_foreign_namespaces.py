"""A kube-apiserver's namespaces in the same etcd: places for our objects, though binary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.base.json_values import Object
from instar.kube.protobuf.envelope import encode_object
from instar.wire.storage.store import Write
from tests.migrator.support import crd, group_of, objects_path, widget
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import LiveServer, live_server


@pytest.fixture
def on_etcd(tmp_path: Path) -> Iterator[LiveServer]:
    with EtcdCluster(tmp_path, members=1) as etcd:
        storage = f"etcd://{etcd.members[0].address}/registry"
        with live_server(storage=storage) as server:
            yield server


def _upstream_writes(server: LiveServer, name: str, **metadata: str) -> None:
    obj: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}
    store = server.running.machinery.backend.store
    server.run(store.commit(Write(f"namespaces/{name}", encode_object(obj), 0)))


def _create(server: LiveServer, definition: Object, namespace: str) -> int:
    path = objects_path(definition, "v1", namespace=namespace)
    return server.request("POST", path, widget(definition, 1, "v1")).status


def test_objects_go_where_a_kube_apiserver_has_a_namespace(on_etcd: LiveServer) -> None:
    definition = crd()
    on_etcd.create_crd(definition)
    _upstream_writes(on_etcd, "team")
    _upstream_writes(on_etcd, "leaving", deletionTimestamp="2026-01-01T00:00:00Z")

    assert _create(on_etcd, definition, "team") == 201
    assert _create(on_etcd, definition, "leaving") == 403
    assert _create(on_etcd, definition, "nowhere") == 404
    assert on_etcd.stored(f"{group_of(definition)}/widgets/team/w00001")
