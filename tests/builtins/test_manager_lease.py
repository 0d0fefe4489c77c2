"""Controllers stand still while a real kube-controller-manager holds its lease."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.support.server import LiveServer, live_server

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_LEASE = f"{_LEASES}/kube-controller-manager"
_MERGE = "application/merge-patch+json"


def _soon(holds: Callable[[], bool]) -> bool:
    """Controllers work in the background: there is no event a client could await."""
    until = time.monotonic() + 10.0
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def _hold(server: LiveServer, seconds: int = 60) -> None:
    spec = {"holderIdentity": "manager-1", "leaseDurationSeconds": seconds}
    lease = {"metadata": {"name": "kube-controller-manager"}, "spec": spec}
    assert server.request("POST", _LEASES, lease).status == 201


def _leave(server: LiveServer, name: str) -> None:
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    server.request("DELETE", f"/api/v1/namespaces/{name}")


def _is_there(server: LiveServer, path: str) -> bool:
    return server.request("GET", path).status == 200


def test_a_held_lease_leaves_namespaces_and_their_objects_to_the_manager() -> None:
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        _hold(server)
        _leave(server, "going")
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "staying"}})
        certificate = "/api/v1/namespaces/staying/configmaps/kube-root-ca.crt"
        server.request(
            "PATCH", _LEASE, {"metadata": {"labels": {"seen": "x"}}}, content_type=_MERGE
        )

        assert _is_there(server, "/api/v1/namespaces/going")
        assert not _is_there(server, certificate)

        server.request("PATCH", _LEASE, {"spec": {"holderIdentity": ""}}, content_type=_MERGE)

        assert _soon(lambda: not _is_there(server, "/api/v1/namespaces/going"))
        assert _soon(lambda: _is_there(server, certificate))


def test_a_held_lease_leaves_budgets_ranges_and_mirrored_endpoints_to_the_manager() -> None:
    core, ranges = "/api/v1/namespaces/default", "/apis/networking.k8s.io/v1/servicecidrs"
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    with live_server(storage="memory:") as server:
        _hold(server)
        server.request("POST", budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
        server.request(
            "POST", ranges, {"metadata": {"name": "r"}, "spec": {"cidrs": ["10.7.0.0/24"]}}
        )
        server.request(
            "POST",
            f"{core}/services",
            {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}},
        )
        subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 1}]}
        server.request(
            "POST", f"{core}/endpoints", {"metadata": {"name": "s"}, "subsets": [subset]}
        )

        def done() -> list[bool]:
            return [
                "observedGeneration" in server.request("GET", f"{budgets}/b").json["status"],
                "finalizers" in server.request("GET", f"{ranges}/r").json["metadata"],
                bool(server.request("GET", slices).json["items"]),
            ]

        assert done() == [False] * 3

        server.request("PATCH", _LEASE, {"spec": {"holderIdentity": ""}}, content_type=_MERGE)

        assert _soon(lambda: done() == [True] * 3)


def test_controllers_continue_when_the_lease_has_run_out() -> None:
    with live_server(storage="memory:") as server:
        _hold(server, seconds=1)
        _leave(server, "going")

        assert _soon(lambda: not _is_there(server, "/api/v1/namespaces/going"))


def test_controllers_chosen_by_name_do_not_yield() -> None:
    with live_server(storage="memory:", yields_to_manager=False) as server:
        _hold(server)
        _leave(server, "going")

        assert _soon(lambda: not _is_there(server, "/api/v1/namespaces/going"))


def test_a_namespace_says_what_holds_it() -> None:
    maps = "/api/v1/namespaces/held/configmaps"
    with live_server(storage="memory:") as server:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "held"}})
        server.request("POST", maps, {"metadata": {"name": "a", "finalizers": ["x.example/f"]}})
        server.request("DELETE", "/api/v1/namespaces/held")

        def conditions() -> dict[str, tuple[str, str, str]]:
            status = server.request("GET", "/api/v1/namespaces/held").json["status"]
            return {
                one["type"]: (one["status"], one["reason"], one["message"])
                for one in status.get("conditions") or ()
            }

        assert _soon(lambda: bool(conditions()))
        assert conditions() == {
            "NamespaceDeletionDiscoveryFailure": (
                "False", "ResourcesDiscovered", "All resources successfully discovered",
            ),
            "NamespaceDeletionGroupVersionParsingFailure": (
                "False", "ParsedGroupVersions", "All legacy kube types successfully parsed",
            ),
            "NamespaceDeletionContentFailure": (
                "False", "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            "NamespaceContentRemaining": (
                "True", "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances",
            ),
            "NamespaceFinalizersRemaining": (
                "True", "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: "
                "x.example/f in 1 resource instances",
            ),
        }  # fmt: skip

        server.request(
            "PATCH", f"{maps}/a", {"metadata": {"finalizers": None}}, content_type=_MERGE
        )

        assert _soon(lambda: not _is_there(server, "/api/v1/namespaces/held"))


def test_beside_a_manager_the_usage_of_quotas_is_raised_and_not_lowered() -> None:
    """The manager recounts after deletions; what is created is written by the API server."""
    maps = "/api/v1/namespaces/default/configmaps"
    path = "/api/v1/namespaces/default/resourcequotas/q"
    hard = {"count/configmaps": "5"}

    def used() -> str | None:
        status: dict[str, dict[str, str]] = server.request("GET", path).json.get("status", {})
        return status.get("used", {}).get("count/configmaps")

    with live_server(storage="memory:") as server:
        _hold(server)
        quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
        server.request("POST", path.removesuffix("/q"), quota)
        server.request("POST", maps, {"metadata": {"name": "early"}})
        assert used() is None  # the manager has not looked at it yet

        status = {"status": {"hard": hard, "used": {"count/configmaps": "0"}}}
        server.request("PATCH", f"{path}/status", status, content_type=_MERGE)
        assert _soon(lambda: used() == "1")

        server.request("DELETE", f"{maps}/early")
        server.request("POST", maps, {"metadata": {"name": "a"}})
        server.request("POST", maps, {"metadata": {"name": "b"}})
        assert _soon(lambda: used() == "2")

        server.request("DELETE", f"{maps}/a")
        server.request("PATCH", path, {"metadata": {"labels": {"l": "x"}}}, content_type=_MERGE)
        assert used() == "2"
