"""Leases of API servers: which have expired, and that a start deletes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from instar.server.registry.controllers.bootstrap.server_lease import is_expired
from tests.support.server import live_server
from tests.support.waiting import eventually

_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@pytest.mark.parametrize(
    ("spec", "expired"),
    [
        ({"renewTime": "2026-01-01T11:00:01.000000Z", "leaseDurationSeconds": 3600}, False),
        ({"renewTime": "2026-01-01T10:59:59.000000Z", "leaseDurationSeconds": 3600}, True),
        ({"renewTime": "9999-12-31T23:59:59.000000Z", "leaseDurationSeconds": 2**31 - 1}, False),
        ({"renewTime": "0001-01-01T00:00:00.000000Z", "leaseDurationSeconds": 1}, True),
        ({"leaseDurationSeconds": 3600}, True),
        ({"renewTime": "2026-01-01T11:00:01.000000Z"}, True),
        (None, True),
    ],
)
def test_a_lease_expires_when_it_is_not_renewed(spec: Any, expired: bool) -> None:
    assert is_expired({"spec": spec}, _NOW) is expired


def test_a_start_deletes_expired_leases_of_api_servers_alone(tmp_path: Any) -> None:
    storage = f"sqlite:{tmp_path}/store.db"
    old = {"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3600}
    identity = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
    with live_server(storage=storage, bootstrap_objects=True) as server:
        eventually(lambda: server.request("GET", _LEASES).json["items"] != [])
        for name, labels in (("gone", identity), ("other", {})):
            lease = {"metadata": {"name": name, "labels": labels}, "spec": old}
            assert server.request("POST", _LEASES, lease).status == 201

    with live_server(storage=storage, bootstrap_objects=True) as server:
        eventually(lambda: server.request("GET", f"{_LEASES}/gone").status == 404)
        names = [each["metadata"]["name"] for each in server.request("GET", _LEASES).json["items"]]

    assert "other" in names
    assert any(name.startswith("apiserver-") for name in names)
