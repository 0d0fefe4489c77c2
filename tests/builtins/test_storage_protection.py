"""Deleted storage objects stay as long as they are in use, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from instar.server.registry.controllers.storage_protection import mounts_claim, names_class
from tests.support.server import LiveServer, live_server

_PODS = "/api/v1/namespaces/default/pods"
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_MERGE = "application/merge-patch+json"


def _soon(holds: Callable[[], bool]) -> bool:
    """Controllers work in the background: there is no event a client could await."""
    until = time.monotonic() + 10.0
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def _is_gone(server: LiveServer, path: str) -> bool:
    return server.request("GET", path).status == 404


def _claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


def _pod(**spec: Any) -> dict[str, Any]:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    container = {"name": "c", "image": "i"}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [container], "volumes": [volume], **spec},
    }


def test_a_claim_goes_when_the_last_pod_on_a_node_is_gone() -> None:
    with live_server(storage="memory:") as server:
        server.request("POST", _CLAIMS, _claim("c"))
        server.request("POST", _PODS, _pod(nodeName="n", terminationGracePeriodSeconds=0))
        server.request("DELETE", f"{_CLAIMS}/c")
        server.request(
            "PATCH", f"{_CLAIMS}/c", {"metadata": {"labels": {"a": "b"}}}, content_type=_MERGE
        )

        assert server.request("GET", f"{_CLAIMS}/c").json["metadata"]["deletionTimestamp"]

        server.request("DELETE", f"{_PODS}/p", {"gracePeriodSeconds": 0})

        assert _soon(lambda: _is_gone(server, f"{_CLAIMS}/c"))


def test_a_volume_goes_when_it_is_not_bound() -> None:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
    }
    with live_server(storage="memory:") as server:
        assert (
            server.request("POST", _VOLUMES, {"metadata": {"name": "v"}, "spec": spec}).status
            == 201
        )
        server.request(
            "PATCH", f"{_VOLUMES}/v/status", {"status": {"phase": "Bound"}}, content_type=_MERGE
        )
        server.request("DELETE", f"{_VOLUMES}/v")

        assert server.request("GET", f"{_VOLUMES}/v").status == 200

        server.request(
            "PATCH", f"{_VOLUMES}/v/status", {"status": {"phase": "Released"}}, content_type=_MERGE
        )

        assert _soon(lambda: _is_gone(server, f"{_VOLUMES}/v"))


def test_a_namespace_with_a_claim_can_be_deleted() -> None:
    with live_server(storage="memory:") as server:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        server.request("POST", "/api/v1/namespaces/n/persistentvolumeclaims", _claim("c"))
        server.request("DELETE", "/api/v1/namespaces/n")

        assert _soon(lambda: _is_gone(server, "/api/v1/namespaces/n"))


@pytest.mark.parametrize(
    ("pod", "used"),
    [
        (_pod(nodeName="n"), True),
        (_pod(), False),
        (_pod(nodeName="n", volumes=[{"name": "v", "emptyDir": {}}]), False),
        (_pod(nodeName="n", volumes=[{"name": "c", "ephemeral": {}}]), False),
    ],
)
def test_only_scheduled_pods_that_mount_a_claim_hold_it(pod: dict[str, Any], used: bool) -> None:
    assert mounts_claim(pod, "c") is used


def test_an_ephemeral_volume_holds_its_claim_until_the_pod_has_ended() -> None:
    pod = _pod(nodeName="n", volumes=[{"name": "v", "ephemeral": {}}])
    ended = {
        **pod,
        "metadata": {"name": "p", "deletionTimestamp": "x", "deletionGracePeriodSeconds": 0},
    }

    assert mounts_claim(pod, "p-v")
    assert not mounts_claim(ended, "p-v")


def test_a_class_is_in_use_by_the_desired_and_by_the_current_class_name() -> None:
    assert names_class({"spec": {"volumeAttributesClassName": "gold"}}, "gold")
    assert names_class({"status": {"currentVolumeAttributesClassName": "gold"}}, "gold")
    assert not names_class({"spec": {}}, "gold")
