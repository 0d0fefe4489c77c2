"""ServiceCIDRs without a kube-controller-manager: ready, protected, and let go when unused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.kube.builtin_rules.derived.service_ranges import networks_of, would_orphan
from instar.server.registry.controllers import service_ranges
from instar.server.registry.controllers.service_ranges import FINALIZER
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

_RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
_SERVICES = "/api/v1/namespaces/default/services"


@pytest.mark.parametrize(
    ("leaving", "staying", "addresses", "orphans"),
    [
        (["10.1.0.0/24"], [], ["10.1.0.5"], True),
        (["10.1.0.0/24"], [], ["10.2.0.5"], False),
        (["10.1.0.0/24"], ["10.1.0.0/16"], ["10.1.0.5"], False),
        (["10.1.0.0/16"], ["10.1.0.0/24"], ["10.1.0.5"], False),
        (["10.1.0.0/16"], ["10.1.0.0/24"], ["10.1.7.5"], True),
        (["fd00::/112"], ["10.1.0.0/24"], ["fd00::5"], True),
        ([], [], ["10.1.0.5"], False),
    ],
)
def test_a_range_may_go_when_its_addresses_are_in_another(
    leaving: list[str], staying: list[str], addresses: list[str], orphans: bool
) -> None:
    assert would_orphan(networks_of(leaving), networks_of(staying), addresses) is orphans


@given(st.lists(st.ip_addresses(v=4).map(str), max_size=5))
def test_a_range_with_a_twin_may_always_go(addresses: list[str]) -> None:
    [network] = networks_of(["0.0.0.0/0"])

    assert not would_orphan([network], [network], addresses)


def _range(server: LiveServer, name: str) -> Object:
    found: Object = server.request("GET", f"{_RANGES}/{name}").json
    return found


def _ready(obj: Object) -> Any:
    [condition] = (obj.get("status") or {}).get("conditions") or [{}]
    return condition.get("status"), condition.get("reason")


def test_a_range_is_ready_and_goes_when_no_service_has_an_address_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_ranges, "_GRACE", timedelta(0))
    with live_server(bootstrap_objects=True) as server:
        eventually(lambda: _ready(_range(server, "kubernetes")) == ("True", ""))
        body = {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.77.0.0/28"]}}
        assert server.request("POST", _RANGES, body).status == 201
        eventually(lambda: _ready(_range(server, "more")) == ("True", ""))
        assert _range(server, "more")["metadata"]["finalizers"] == [FINALIZER]
        spec = {"clusterIP": "10.77.0.5", "ports": [{"port": 80}]}
        made = server.request("POST", _SERVICES, {"metadata": {"name": "in"}, "spec": spec})
        assert made.status == 201, made.text

        server.request("DELETE", f"{_RANGES}/more")

        eventually(lambda: _ready(_range(server, "more")) == ("False", "Terminating"))
        server.request("DELETE", f"{_SERVICES}/in")
        eventually(lambda: server.request("GET", f"{_RANGES}/more").status == 404)
