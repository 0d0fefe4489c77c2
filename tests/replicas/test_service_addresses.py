"""Two replicas never give one cluster IP or node port to two Services."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.replicas.processes import Replica

_SERVICES = "/api/v1/namespaces/default/services"
_ROUNDS = 20


def _make(replica: Replica, name: str, address: str) -> int:
    spec = {"ports": [{"port": 80}], "clusterIP": address}
    return replica.request("POST", _SERVICES, {"metadata": {"name": name}, "spec": spec}).status


def test_one_of_two_services_gets_an_address_that_both_ask_for(
    one: Replica, other: Replica
) -> None:
    with ThreadPoolExecutor(2) as threads:
        outcomes = []
        for number in range(_ROUNDS):
            address = f"10.0.0.{100 + number}"
            jobs = [
                threads.submit(_make, replica, f"same-{number}-{replica.name}", address)
                for replica in (one, other)
            ]
            outcomes.append(sorted(job.result() for job in jobs))

    assert outcomes == [[201, 422]] * _ROUNDS


def test_services_made_at_both_replicas_at_once_have_addresses_of_their_own(
    one: Replica, other: Replica
) -> None:
    with ThreadPoolExecutor(2) as threads:
        jobs = [
            threads.submit(_made_in_a_row, replica, f"apart-{replica.name}")
            for replica in (one, other)
        ]
        given = [address for job in jobs for address in job.result()]

    assert len(set(given)) == len(given)


def _made_in_a_row(replica: Replica, prefix: str) -> list[str]:
    found = []
    for number in range(_ROUNDS):
        body = {"metadata": {"name": f"{prefix}-{number}"}, "spec": {"ports": [{"port": 80}]}}
        found.append(replica.request("POST", _SERVICES, body).json["spec"]["clusterIP"])
    return found


def _make_with_port(replica: Replica, name: str, port: int) -> int:
    ports = [{"port": 80, "nodePort": port}]
    body = {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}}
    return replica.request("POST", _SERVICES, body).status


def test_one_of_two_services_gets_a_node_port_that_both_ask_for(
    one: Replica, other: Replica
) -> None:
    with ThreadPoolExecutor(2) as threads:
        outcomes = []
        for number in range(_ROUNDS):
            jobs = [
                threads.submit(
                    _make_with_port, replica, f"port-{number}-{replica.name}", 31000 + number
                )
                for replica in (one, other)
            ]
            outcomes.append(sorted(job.result() for job in jobs))

    assert outcomes == [[201, 422]] * _ROUNDS


def test_a_node_port_is_free_at_once_when_its_service_is_deleted(
    one: Replica, other: Replica
) -> None:
    port = 31500
    for number in range(4):
        maker, remover = (one, other) if number % 2 else (other, one)
        assert _make_with_port(maker, f"again-{number}", port) == 201
        assert remover.request("DELETE", f"{_SERVICES}/again-{number}").status == 200
