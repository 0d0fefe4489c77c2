"""What a cluster has from the start, and what quotas and limits do."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.support.server import LiveServer, live_server

_QUOTAS = "/api/v1/namespaces/default/resourcequotas"
_MAPS = "/api/v1/namespaces/default/configmaps"


def _soon(holds: Callable[[], bool]) -> bool:
    """Furniture and status follow in the background: there is no event a client could await."""
    until = time.monotonic() + 10.0
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def _is_there(server: LiveServer, path: str) -> bool:
    return server.request("GET", path).status == 200


def test_a_new_namespace_gets_its_account_and_certificate_and_keeps_them() -> None:
    with live_server(storage="memory:", furniture=True) as server:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        account = "/api/v1/namespaces/n/serviceaccounts/default"
        authority = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt"

        assert _soon(lambda: _is_there(server, account) and _is_there(server, authority))
        told = server.request("GET", authority).json["data"]["ca.crt"]
        assert told == server.running.ca.decode()

        server.request("DELETE", account)
        assert _soon(lambda: _is_there(server, account))


def test_a_server_without_furniture_is_bare() -> None:
    with live_server(storage="memory:", furniture=False) as server:
        accounts = server.request("GET", "/api/v1/serviceaccounts").json["items"]

    assert accounts == []


def test_a_quota_counts_what_is_there_and_refuses_what_is_too_much() -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}}
    with live_server(storage="memory:") as server:
        server.request("POST", _QUOTAS, quota)
        first = server.request("POST", _MAPS, {"metadata": {"name": "a"}})
        second = server.request("POST", _MAPS, {"metadata": {"name": "b"}})

        def used() -> object:
            status = server.request("GET", f"{_QUOTAS}/q").json.get("status") or {}
            return (status.get("used") or {}).get("count/configmaps")

        assert first.status == 201
        assert second.status == 403
        assert second.json["message"] == (
            'configmaps "b" is forbidden: exceeded quota: q, requested: count/configmaps=1, '
            "used: count/configmaps=1, limited: count/configmaps=1"
        )
        assert _soon(lambda: used() == "1")
        server.request("DELETE", f"{_MAPS}/a")
        assert _soon(lambda: used() == "0")
