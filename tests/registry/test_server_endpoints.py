"""The endpoints of default/kubernetes: every living server's address."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from instar.cli.main import main
from instar.server.files.host_address import advertised_address, is_reachable
from instar.server.registry.controllers.bootstrap.server_endpoints import (
    endpoint_objects,
    renewals_of,
    with_renewal,
)
from instar.wire.webhooks.resolver import HostPort
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, OTHER = HostPort("10.1.2.3", 6443), HostPort("10.1.2.4", 6443)
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


def lease(*renewed: tuple[HostPort, datetime]) -> dict[str, Any]:
    found: dict[str, Any] = {"metadata": {"name": "apiserver-a"}}
    for address, at in renewed:
        found = {"metadata": with_renewal(found, address, at)}
    return found


def test_servers_of_one_lease_keep_each_others_addresses() -> None:
    later = NOW + timedelta(seconds=10)

    assert set(renewals_of(lease((ONE, NOW), (OTHER, later)))) == {ONE, OTHER}


def test_an_address_that_is_not_renewed_is_dropped() -> None:
    later = NOW + timedelta(minutes=1)

    assert set(renewals_of(lease((ONE, NOW), (OTHER, later)))) == {OTHER}


@pytest.mark.parametrize("text", ["", "{", "7", '["a"]', '[["10.0.0.1","port","x"]]', "null"])
def test_an_annotation_of_others_names_no_server(text: str) -> None:
    foreign = {"metadata": {"annotations": {"instar.dev/endpoints": text}}}

    assert renewals_of(foreign) == {}


def test_servers_on_several_ports_are_subsets_of_their_own() -> None:
    endpoints, shown = endpoint_objects([OTHER, ONE, HostPort("10.1.2.5", 7443)])

    assert [len(each["addresses"]) for each in endpoints["subsets"]] == [2, 1]
    assert [each["addresses"] for each in shown["endpoints"]] == [["10.1.2.3"], ["10.1.2.4"]]


def test_servers_with_ipv6_alone_have_a_slice_of_that_family() -> None:
    _, shown = endpoint_objects([HostPort("fd00::2", 6443)])

    assert (shown["addressType"], len(shown["endpoints"])) == ("IPv6", 1)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "169.254.0.1", "224.0.0.1", "a"])
def test_an_address_that_others_cannot_reach_is_not_advertised(host: str) -> None:
    assert not is_reachable(host)
    assert advertised_address("10.9.9.9", host) == "10.9.9.9"


def test_an_unreachable_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--advertise-address", "127.0.0.1"])

    assert "no address that other machines can reach" in capsys.readouterr().err


def test_both_objects_name_the_server_and_come_back_when_deleted() -> None:
    with live_server(bootstrap_objects=True, advertise_address="10.1.2.3") as server:
        first = eventually(lambda: served(server, SLICE))
        server.request("DELETE", SLICE)
        again = eventually(lambda: served(server, SLICE))
        endpoints = eventually(lambda: served(server, ENDPOINTS))

    assert first["metadata"]["uid"] != again["metadata"]["uid"]
    assert again["endpoints"][0]["addresses"] == ["10.1.2.3"]
    assert endpoints["subsets"][0]["addresses"] == [{"ip": "10.1.2.3"}]
    assert again["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}


def served(server: LiveServer, path: str) -> Any:
    answer = server.request("GET", path)
    return answer.json if answer.status == 200 else None
