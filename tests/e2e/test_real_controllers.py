"""kube-controller-manager collects garbage and empties namespaces of a group that instar serves
behind a real kube-apiserver: owners across both servers, in both directions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from instar.server.settings import ClusterSettings
from tests.storage.etcd_server import free_ports
from tests.support.main_cluster import GROUP, crd, report
from tests.support.real_cluster import RealCluster, real_cluster
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

_CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
)
_WITHIN = 120.0
"""The garbage collector looks for new resources every 30 s."""


class Behind(NamedTuple):
    """A real main cluster, and where its instar runs."""

    main: RealCluster
    folder: Path
    port: int

    @contextmanager
    def instar(self) -> Iterator[LiveServer]:
        with live_server(
            cluster=ClusterSettings(kubeconfig=str(self.main.kubeconfig), groups=(GROUP,)),
            cert_dir=self.folder / "served",
            extra_names=("instar.default.svc",),
            storage=f"sqlite:{self.folder}/instar.db",
            port=self.port,
        ) as served:
            yield served

    def adopt(self, served: LiveServer) -> None:
        ca = self.folder / "ca.crt"
        ca.write_bytes(served.ca)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "instar", "adopt", GROUP, "--in-flight", "0.05s"),
                *("--kubeconfig", str(self.main.kubeconfig), "--api-server", self.main.url),
                *("--instar-service", f"default/instar:{self.port}", "--ca-file", str(ca)),
                *("--journal", str(self.folder / "journal.json")),
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("real")
    with real_cluster(folder, controllers=_CONTROLLERS) as main:
        main.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())
        main.made(
            "/api/v1/namespaces/default/services",
            {
                "metadata": {"name": "instar"},
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            },
        )
        found = Behind(main, folder, free_ports(1)[0])
        eventually(lambda: main.request("GET", _reports("default")).status == 200)
        with found.instar() as served:
            found.adopt(served)
        yield found


@pytest.fixture
def main(behind: Behind) -> Iterator[RealCluster]:
    with behind.instar():
        _served(behind)
        yield behind.main


def _served(behind: Behind) -> None:
    eventually(lambda: behind.main.request("GET", _reports("default")).status == 200, _WITHIN)


def _reports(namespace: str, name: str = "") -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/reports" + (f"/{name}" if name else "")


def _maps(name: str = "") -> str:
    return "/api/v1/namespaces/default/configmaps" + (f"/{name}" if name else "")


def _owned_by(owner: dict[str, Any], kind: str, **more: Any) -> dict[str, Any]:
    version = f"{GROUP}/v1" if kind == "Report" else "v1"
    named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {"ownerReferences": [{"apiVersion": version, "kind": kind, **named, **more}]}


def test_what_an_object_in_instar_owns_goes_with_it(main: RealCluster) -> None:
    owner = main.made(_reports("default"), report("owner"))
    main.made(_maps(), {"metadata": {"name": "owned", **_owned_by(owner, "Report")}})

    main.request("DELETE", _reports("default", "owner"))

    eventually(lambda: main.is_gone(_maps("owned")), _WITHIN)


def test_an_object_in_instar_goes_with_its_owner_in_etcd(main: RealCluster) -> None:
    owner = main.made(_maps(), {"metadata": {"name": "owner"}})
    owned = report("owned")
    owned["metadata"] |= _owned_by(owner, "ConfigMap")
    main.made(_reports("default"), owned)

    main.request("DELETE", _maps("owner"))

    eventually(lambda: main.is_gone(_reports("default", "owned")), _WITHIN)


def test_an_owner_that_exists_in_etcd_keeps_its_object_in_instar(main: RealCluster) -> None:
    owner = main.made(_maps(), {"metadata": {"name": "living"}})
    kept, doomed = report("kept"), report("doomed")
    kept["metadata"] |= _owned_by(owner, "ConfigMap")
    absent = {"metadata": {"name": "absent", "uid": "00000000-0000-4000-8000-000000000000"}}
    doomed["metadata"] |= _owned_by(absent, "ConfigMap")
    main.made(_reports("default"), kept)

    main.made(_reports("default"), doomed)

    eventually(lambda: main.is_gone(_reports("default", "doomed")), _WITHIN)
    assert not main.is_gone(_reports("default", "kept"))


def test_foreground_deletion_waits_for_what_is_owned(main: RealCluster) -> None:
    owner = main.made(_reports("default"), report("foreground"))
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    blocking = _owned_by(owner, "Report", blockOwnerDeletion=True)
    main.made(_maps(), {"metadata": {**held, **blocking}})

    main.request("DELETE", _reports("default", "foreground"), {"propagationPolicy": "Foreground"})
    eventually(
        lambda: "deletionTimestamp" in main.request("GET", _maps("held")).json["metadata"], _WITHIN
    )
    waiting = main.request("GET", _reports("default", "foreground"))
    merge = "application/merge-patch+json"
    main.request("PATCH", _maps("held"), {"metadata": {"finalizers": None}}, merge)

    assert waiting.json["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: main.is_gone(_reports("default", "foreground")), _WITHIN)
    assert main.is_gone(_maps("held"))


def test_orphans_stay_without_their_owner(main: RealCluster) -> None:
    owner = main.made(_reports("default"), report("leaving"))
    main.made(_maps(), {"metadata": {"name": "orphan", **_owned_by(owner, "Report")}})

    main.request("DELETE", _reports("default", "leaving"), {"propagationPolicy": "Orphan"})

    eventually(lambda: main.is_gone(_reports("default", "leaving")), _WITHIN)
    assert "ownerReferences" not in main.request("GET", _maps("orphan")).json["metadata"]


def test_a_deleted_namespace_is_emptied_in_instar(main: RealCluster) -> None:
    main.made("/api/v1/namespaces", {"metadata": {"name": "passing"}})
    eventually(lambda: _accepts(main, "passing"), _WITHIN)

    main.request("DELETE", "/api/v1/namespaces/passing")

    eventually(lambda: main.is_gone("/api/v1/namespaces/passing"), _WITHIN)
    assert main.request("GET", _reports("passing")).json["items"] == []


def test_a_namespace_deleted_while_instar_is_down_goes_when_it_is_back(behind: Behind) -> None:
    main = behind.main
    with behind.instar():
        _served(behind)
        main.made("/api/v1/namespaces", {"metadata": {"name": "waiting"}})
        eventually(lambda: _accepts(main, "waiting"), _WITHIN)
    main.request("DELETE", "/api/v1/namespaces/waiting")

    def waits() -> bool:
        status = main.request("GET", "/api/v1/namespaces/waiting").json["status"]
        return any(each["status"] == "True" for each in status.get("conditions") or ())

    eventually(waits, _WITHIN)
    with behind.instar():
        eventually(lambda: main.is_gone("/api/v1/namespaces/waiting"), _WITHIN)
        _served(behind)
        assert main.request("GET", _reports("waiting")).json["items"] == []


def _accepts(main: RealCluster, namespace: str) -> bool:
    """Create an object there: instar sees a new namespace a moment after the main cluster."""
    path = _reports(namespace)
    return main.request("POST", path, report("kept", namespace=namespace)).status == 201


def test_a_quota_of_the_main_cluster_counts_objects_in_instar(main: RealCluster) -> None:
    main.made("/api/v1/namespaces", {"metadata": {"name": "limited"}})
    name = f"count/reports.{GROUP}"
    quotas = "/api/v1/namespaces/limited/resourcequotas"
    main.made(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {name: "1"}}})

    def used() -> str:
        status = main.request("GET", f"{quotas}/few").json.get("status") or {}
        return str((status.get("used") or {}).get(name, ""))

    eventually(lambda: used() == "0", _WITHIN)
    eventually(lambda: _accepts(main, "limited"), _WITHIN)
    second = main.request("POST", _reports("limited"), report("b", namespace="limited"))

    assert second.status == 403
    assert "exceeded quota" in second.json["message"]
    main.request("DELETE", _reports("limited", "kept"))
    eventually(lambda: used() == "0", _WITHIN)
