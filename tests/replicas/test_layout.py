"""What lies in etcd: kube-apiserver's layout, one JSON document an object, and others' things."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.replicas.processes import Deployment, Replica, etcdctl, prepare_pki
from tests.replicas.resources import CRDS, crd, note, path, version
from tests.replicas.test_consistency import create, create_crd, done
from tests.storage.etcd_server import EtcdCluster

CRD_KEY = "/registry/apiextensions.k8s.io/customresourcedefinitions"


def stored(address: str, prefix: str) -> dict[str, bytes]:
    lines = etcdctl(address, "get", "--prefix", prefix, "-w", "json")
    found = json.loads(lines).get("kvs", [])
    return {_text(kv["key"]).decode(): _text(kv.get("value", "")) for kv in found}


def _text(encoded: str) -> bytes:
    return base64.b64decode(encoded)


def test_one_json_document_an_object_at_its_storage_version(pair: Deployment, one: Replica) -> None:
    group = "layout.io"
    create_crd(one, group, versions=[version("v1"), version("v2", storage=True)])
    cluster_wide = crd(group, "signs", "Sign", scope="Cluster")
    done(one.request("POST", CRDS, cluster_wide), 201)
    created = create(one, group, "a", last="x")
    done(one.request("POST", f"/apis/{group}/v1/signs", note(group, "b", "Sign")), 201)

    found = stored(pair.cluster.addresses[0], f"/registry/{group}/")

    assert list(found) == [f"/registry/{group}/notes/default/a", f"/registry/{group}/signs/b"]
    document = json.loads(found[f"/registry/{group}/notes/default/a"])
    expected = {**created, "apiVersion": f"{group}/v2"}
    del expected["metadata"]["resourceVersion"]
    assert document == expected
    crds = stored(pair.cluster.addresses[0], CRD_KEY)
    definition = json.loads(crds[f"{CRD_KEY}/notes.{group}"])
    assert definition["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert "resourceVersion" not in definition["metadata"]


LEGACY = {
    "kind": "CustomResourceDefinition",
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "metadata": {
        "name": "relics.old.io",
        "uid": "5a8a5b5c-3a3a-4a53-9a37-0d8f5f1e7f11",
        "generation": 1,
        "creationTimestamp": "2019-05-01T10:00:00Z",
    },
    "spec": {
        "group": "old.io",
        "version": "v1",
        "names": {
            "plural": "relics",
            "singular": "relic",
            "kind": "Relic",
            "listKind": "RelicList",
        },
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True}],
        "conversion": {"strategy": "None"},
        "preserveUnknownFields": True,
    },
    "status": {
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastTransitionTime": "2019-05-01T10:00:00Z",
                "reason": reason,
                "message": "",
            }
            for kind, reason in (("NamesAccepted", "NoConflicts"), ("Established", "Initial"))
        ],
        "acceptedNames": {
            "plural": "relics",
            "singular": "relic",
            "kind": "Relic",
            "listKind": "RelicList",
        },
        "storedVersions": ["v1"],
    },
}
BINARY = b"k8s\x00\n\x0f\n\x02v1\x12\tNamespace\x12\xff\xfe\x00"


@pytest.fixture
def inherited(tmp_path: Path) -> Iterator[tuple[EtcdCluster, Replica]]:
    """An etcd that another server has written to, and a replica not yet started on it."""
    prepare_pki(tmp_path)
    with EtcdCluster(tmp_path, members=1) as cluster:
        replica = Replica(tmp_path, "heir", f"etcd://{cluster.addresses[0]}")
        yield cluster, replica
        replica.kill()


def put(cluster: EtcdCluster, key: str, value: bytes | dict[str, Any]) -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
    etcdctl(cluster.addresses[0], "put", key, data=data)


def test_keys_left_by_another_server_are_served_or_tolerated(
    inherited: tuple[EtcdCluster, Replica],
) -> None:
    cluster, replica = inherited
    put(cluster, "/registry/namespaces/default", BINARY)
    put(cluster, "/registry/pods/default/p", BINARY)
    put(cluster, f"{CRD_KEY}/relics.old.io", LEGACY)
    put(cluster, f"{CRD_KEY}/broken.old.io", BINARY)
    put(cluster, f"{CRD_KEY}/senseless.old.io", b'{"apiVersion":"apiextensions.k8s.io/v1"}')
    relic = {
        "apiVersion": "old.io/v1",
        "kind": "Relic",
        "metadata": {"name": "vase", "namespace": "default", "uid": "v", "labels": {"era": "iron"}},
        "anything": {"goes": [1, 2]},
    }
    put(cluster, "/registry/old.io/relics/default/vase", relic)
    put(cluster, "/registry/old.io/relics/default/shard", BINARY)

    replica.start()
    replica.until_ready()

    where = "/apis/old.io/v1/namespaces/default/relics"
    vase = done(replica.request("GET", f"{where}/vase"))
    assert vase["anything"] == {"goes": [1, 2]}
    definition = done(replica.request("GET", f"{CRDS}/relics.old.io"))
    assert definition["apiVersion"] == "apiextensions.k8s.io/v1"
    changed = {**vase, "anything": "else"}
    assert done(replica.request("PUT", f"{where}/vase", changed))["anything"] == "else"
    broken = replica.request("GET", f"{where}/shard")
    assert (broken.status, "cannot be read" in broken.text) == (500, True)
    create_crd(replica, "new.io")
    create(replica, "new.io", "a")

    put(cluster, "/registry/old.io/relics/default/shard", BINARY + b"2")
    put(cluster, f"{CRD_KEY}/broken.old.io", BINARY + b"2")
    assert done(replica.request("GET", path("new.io", "a")))["metadata"]["name"] == "a"
    done(replica.request("DELETE", f"{CRDS}/relics.old.io"))
    assert b"shard" not in etcdctl(cluster.addresses[0], "get", "--prefix", "/registry/old.io/")
    assert stored(cluster.addresses[0], "/registry/namespaces/") == {
        "/registry/namespaces/default": BINARY
    }
