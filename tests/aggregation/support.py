"""APIServices of tests: registered, waited for, and taken away."""

from __future__ import annotations

from typing import Any

from tests.aggregation.backend import Backend
from tests.support.server import LiveServer
from tests.support.waiting import eventually

APIS = "/apis/apiregistration.k8s.io/v1/apiservices"


def add_service(main: LiveServer, name: str = "echo", **spec: Any) -> None:
    """A Service; without a spec the machine itself, by a name."""
    wanted = spec or {"type": "ExternalName", "externalName": "localhost"}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": wanted}
    path = "/api/v1/namespaces/default/services"
    answer = main.request("POST", path, body)
    assert answer.status in (201, 409), answer.text


def api_service(group: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 100,
            **spec,
        },
    }


def remote(port: int, name: str = "echo") -> dict[str, Any]:
    return {"namespace": "default", "name": name, "port": port}


def register(main: LiveServer, backend: Backend, group: str, version: str = "v1") -> str:
    """Register a group version at a backend and wait until it is available."""
    add_service(main)
    obj = api_service(group, version, service=remote(backend.port), caBundle=backend.ca_bundle)
    answer = main.request("POST", APIS, obj)
    assert answer.status == 201, answer.text
    name = f"{version}.{group}"
    wait_for(main, name, "True")
    return name


def condition(main: LiveServer, name: str) -> dict[str, Any]:
    answer = main.request("GET", f"{APIS}/{name}")
    found: list[dict[str, Any]] = (answer.json.get("status") or {}).get("conditions") or [{}]
    return found[0]


def wait_for(main: LiveServer, name: str, status: str, reason: str = "") -> dict[str, Any]:
    """The condition, once it has this status and reason."""

    def look() -> dict[str, Any] | None:
        found = condition(main, name)
        well = found.get("status") == status and (not reason or found.get("reason") == reason)
        return found if well else None

    return eventually(look)
