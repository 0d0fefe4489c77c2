"""Health in upstream's words: every check by name, reasons on the check's own path only."""

from __future__ import annotations

import pytest

from instar.server.endpoints.health import Check, Health
from instar.server.http.messages import Request, parse_query
from tests.support.server import LiveServer

SUITES_LOOK_FOR = (
    "[+]ping ok",
    "[+]log ok",
    "[+]etcd ok",
    "[+]poststarthook/start-apiextensions-informers ok",
    "[+]poststarthook/start-apiextensions-controllers ok",
    "[+]poststarthook/crd-informer-synced ok",
    "[+]poststarthook/bootstrap-controller ok",
    "[+]autoregister-completion ok",
)


def ask(path: str, store: str | None = None, started: Check = lambda: None) -> tuple[int, str]:
    health = Health({"etcd": lambda: store}, started)
    plain, _, query = path.partition("?")
    request = Request("GET", plain, parse_query(query.encode()), {}, b"")
    response = health.respond(request)
    assert response is not None
    return response.status, b"".join(response.chunks).decode()


@pytest.mark.parametrize("path", ["healthz", "livez", "readyz"])
def test_verbose_names_every_check(server: LiveServer, path: str) -> None:
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
    assert ask("/readyz?exclude=etcd", store="gone") == (200, "ok")
    _, text = ask("/readyz?exclude=etcd&exclude=b&exclude=a&verbose", store="gone")

    assert "[+]etcd excluded: ok\n" in text
    assert 'warn: some health checks cannot be excluded: no matches for "a","b"\n' in text


def test_a_process_that_answers_is_alive() -> None:
    assert ask("/livez", store="gone", started=lambda: "not finished") == (200, "ok")
    assert ask("/readyz", started=lambda: "not finished")[0] == 500
