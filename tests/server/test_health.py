"""Health in upstream's words: every check by name, reasons on the check's own path only."""

from __future__ import annotations

import pytest

from instar.server.endpoints.health import Check, Health
from instar.server.http.messages import Request, parse_query
from instar.server.lifecycle.start_hooks import StoredOnce
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

HOOKS = """
    start-apiserver-admission-initializer generic-apiserver-start-informers
    start-apiextensions-informers start-apiextensions-controllers crd-informer-synced
    bootstrap-controller start-system-namespaces-controller start-service-ip-repair-controllers
    rbac/bootstrap-roles scheduling/bootstrap-system-priority-classes
    start-cluster-authentication-info-controller start-kube-aggregator-informers
    apiservice-registration-controller apiservice-status-local-available-controller
    apiservice-status-remote-available-controller kube-apiserver-autoregistration
    apiservice-openapi-controller storage-object-count-tracker-hook
    start-kube-apiserver-identity-lease-garbage-collector
"""
PLAIN = ("ping", "log", "etcd", "autoregister-completion")
SUITES_LOOK_FOR = [
    f"[+]{name} ok" for name in (*PLAIN, *(f"poststarthook/{hook}" for hook in HOOKS.split()))
]
"""What Kubernetes' end-to-end specs of these endpoints demand."""


def ask(path: str, store: str | None = None, started: Check = lambda: None) -> tuple[int, str]:
    health = Health({"etcd": lambda: store}, {"poststarthook/a": started}, started)
    plain, _, query = path.partition("?")
    request = Request("GET", plain, parse_query(query.encode()), {}, b"")
    response = health.respond(request)
    assert response is not None
    return response.status, b"".join(response.chunks).decode()


@pytest.mark.parametrize("path", ["healthz", "livez", "readyz"])
def test_verbose_names_every_check(server: LiveServer, path: str) -> None:
    eventually(lambda: server.request("GET", "/readyz").status == 200)

    lines = server.request("GET", f"/{path}?verbose").text.splitlines()

    assert set(SUITES_LOOK_FOR) <= set(lines)
    assert lines[-1] == f"{path} check passed"


def test_a_failing_check_is_named_without_its_reason() -> None:
    status, text = ask("/readyz", store="the disk is full")

    assert status == 500
    assert "[-]etcd failed: reason withheld\n" in text
    assert text.endswith("readyz check failed\n")
    assert "disk" not in text


def test_the_checks_own_path_tells_the_reason() -> None:
    refused = (500, "internal server error: the disk is full\n")

    assert ask("/readyz/etcd", store="the disk is full") == refused
    assert ask("/readyz/ping", store="the disk is full") == (200, "ok")


def test_excluded_checks_do_not_count() -> None:
    both = "/readyz?exclude=etcd&exclude=etcd-readiness"
    assert ask(both, store="gone") == (200, "ok")
    _, text = ask(f"{both}&exclude=b&exclude=a&verbose", store="gone")

    assert "[+]etcd excluded: ok\n" in text
    assert 'warn: some health checks cannot be excluded: no matches for "a","b"\n' in text


def test_a_process_that_answers_is_alive() -> None:
    assert ask("/livez", store="gone", started=lambda: "not finished") == (200, "ok")
    assert ask("/readyz", started=lambda: "not finished")[0] == 500


def test_a_hook_is_done_once_its_objects_are_stored_and_stays_done(
    fresh_server: LiveServer,
) -> None:
    check = "/readyz/poststarthook/scheduling/bootstrap-system-priority-classes"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    with live_server(bootstrap_objects=True) as server:
        eventually(lambda: server.request("GET", check).text == "ok")

        gone = server.request("DELETE", f"{classes}/system-node-critical")

        assert (gone.status, server.request("GET", check).text) == (200, "ok")


def test_a_hook_waits_for_its_objects(fresh_server: LiveServer) -> None:
    catalog = fresh_server.running.machinery.catalog

    started = StoredOnce(lambda: catalog, (("", "services", "default/later"),))

    assert started() == "not finished: services default/later is not stored yet"


def test_a_hook_is_done_whose_objects_were_deleted_before_it_was_asked() -> None:
    with live_server(bootstrap_objects=True) as server:
        path = "/api/v1/namespaces/default/services/kubernetes"
        eventually(lambda: server.request("GET", path).status == 200)

        gone = server.request("DELETE", path)
        shown = server.request("GET", "/readyz/poststarthook/bootstrap-controller")

        assert (gone.status, shown.text) == (200, "ok")


def test_a_server_that_stops_is_not_ready() -> None:
    health = Health({"etcd": lambda: None}, {}, lambda: None)
    request = Request("GET", "/readyz/shutdown", {}, {}, b"")

    outcomes = []
    for stopping in (False, True):
        health.stopping = stopping
        response = health.respond(request)
        assert response is not None
        outcomes.append((response.status, b"".join(response.chunks)))

    assert outcomes == [
        (200, b"ok"),
        (500, b"internal server error: process is shutting down\n"),
    ]


def test_the_server_notes_when_it_begins_to_stop() -> None:
    with live_server() as server:
        machinery = server.running.machinery
        assert server.request("GET", "/readyz/shutdown").text == "ok"

    assert machinery._health.stopping


def test_readiness_looks_at_the_store_by_two_names() -> None:
    for name in ("etcd", "etcd-readiness"):
        assert ask(f"/readyz/{name}", store="gone")[0] == 500


def test_results_of_whole_reports_are_counted_as_indicators(fresh_server: LiveServer) -> None:
    fresh_server.request("GET", "/livez?exclude=log")

    page = fresh_server.request("GET", "/metrics/slis").text

    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1\n' in page
    assert 'kubernetes_healthchecks_total{name="ping",type="livez",status="success"} 1\n' in page
    assert 'name="log",type="livez"' not in page
    assert "apiserver_request_total" not in page
    assert "kubernetes_healthcheck" not in fresh_server.request("GET", "/metrics").text
