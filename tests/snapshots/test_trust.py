"""A snapshot of a stranger neither opens the server nor makes it call addresses of its choice,
unless the operator trusts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from instar.server.lifecycle.embedded import embedded
from instar.tools.snapshots.access import WITHHELD_URL, opens_access
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.loading import Loaded, load
from instar.tools.snapshots.sources import open_captured_cluster
from instar.tools.snapshots.store_layout import builtin_places
from instar.wire.storage.memory import MemoryStore
from tests.snapshots.worlds import CRD

RBAC = "rbac.authorization.k8s.io/v1"
OPENING: list[dict[str, Any]] = [
    {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "admin",
        },
        "subjects": [{"kind": "User", "name": "system:anonymous"}],
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "sends-everything"},
        "webhooks": [],
    },
    {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.evil.example"},
        "spec": {"group": "evil.example", "version": "v1", "service": {"name": "x"}},
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": "default"},
        "type": "kubernetes.io/service-account-token",
    },
    {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "me-as-admin"},
        "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client"},
    },
]
HARMLESS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}},
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "type": "Opaque",
    },
]


def _converting() -> dict[str, Any]:
    webhook = {
        "clientConfig": {"url": "https://evil.example/convert"},
        "conversionReviewVersions": ["v1"],
    }
    conversion = {"strategy": "Webhook", "webhook": webhook}
    return {**CRD, "spec": {**CRD["spec"], "conversion": conversion}}


def _folder(path: Path) -> str:
    path.mkdir()
    for number, obj in enumerate([*OPENING, *HARMLESS, _converting()]):
        (path / f"{number}.json").write_bytes(orjson.dumps(obj))
    return str(path)


async def _loaded(source: str, *, trust: bool) -> tuple[Loaded, set[str], str]:
    store = MemoryStore()
    with open_captured_cluster(source) as world:
        loaded = await load(world, store, trust_access=trust)
    kinds = {record.key for record in (await store.range("")).records}
    async with embedded(store=store) as server:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
        crd = (await server.ask("GET", path)).document
    url = crd["spec"]["conversion"]["webhook"]["clientConfig"]["url"]
    return loaded, kinds, url


@pytest.mark.anyio
async def test_credentials_are_omitted_and_reported(tmp_path: Path) -> None:
    loaded, keys, url = await _loaded(_folder(tmp_path / "f"), trust=False)

    assert +loaded.withheld == {
        **{obj["kind"]: 1 for obj in OPENING},
        "conversion webhook": 1,
    }
    assert not [key for key in keys if "everybody" in key or "evil" in key or "token" in key]
    assert url == WITHHELD_URL
    assert sum("default/" in key for key in keys) == len(HARMLESS)


@pytest.mark.anyio
async def test_a_trusted_snapshot_is_loaded_unchanged(tmp_path: Path) -> None:
    loaded, keys, url = await _loaded(_folder(tmp_path / "f"), trust=True)

    assert not +loaded.withheld
    assert any("everybody" in key for key in keys)
    assert url == "https://evil.example/convert"


def test_each_built_in_kind_of_a_group_about_access_is_withheld() -> None:
    """A new kind of these groups is covered; a new group must be thought about here."""
    harmless = {
        *("", "apps", "autoscaling", "batch", "coordination.k8s.io", "discovery.k8s.io"),
        *("events.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "resource.k8s.io"),
        *("scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io"),
        "apiextensions.k8s.io",
        "authorization.k8s.io",
        "internal.apiserver.k8s.io",
    }
    for api_version, kind in builtin_places():
        obj = {"apiVersion": api_version, "kind": kind}
        assert opens_access(obj) == (api_version.rpartition("/")[0] not in harmless), obj


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_is_not_a_snapshot(device: str) -> None:
    with pytest.raises(SnapshotError, match="neither a file nor a folder"):
        open_captured_cluster(device)
