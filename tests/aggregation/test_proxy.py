"""Requests that this server passes on: what the backend gets, and what the client gets back."""

from __future__ import annotations

from instar.server.settings import AggregationSettings
from tests.aggregation.backend import Backend
from tests.aggregation.scripts import GROUP, HOME, Scripts
from tests.aggregation.support import register
from tests.support.server import LiveServer, live_server

_OWN = ("audit-id", "cache-control", "date", "content-length")


def _as_joe(**more: str) -> dict[str, str]:
    return {"Impersonate-User": "joe", "Impersonate-Group": "system:masters", **more}


def test_any_method_and_any_path_below_goes_through(main: LiveServer, backend: Backend) -> None:
    """Line 9."""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        answer = main.request(method, f"{HOME}/a/b/c/d/echo", b"body")

        assert (answer.status, answer.body) == (201, b"body"), method
        assert backend.last(f"{HOME}/a/b/c/d/echo").method == method


def test_a_path_that_the_backend_does_not_know_is_its_404(
    main: LiveServer, backend: Backend
) -> None:
    """Line 9."""
    answer = main.request("GET", f"{HOME}/")

    assert backend.last(f"{HOME}/").method == "GET"
    assert answer.json["groupVersion"] == f"{GROUP}/v1"
    assert main.request("GET", f"/apis/{GROUP}/v2/things").status == 404


def test_the_backend_gets_the_user_that_this_server_has_recognised(
    main: LiveServer, backend: Backend
) -> None:
    """Lines 14 and 18."""
    forged = {
        "X-Remote-User": "evil",
        "X-Remote-Group": "evil",
        "X-Remote-Uid": "evil",
        "X-Remote-Extra-Evil": "evil",
        "X-Other": "kept",
        "User-Agent": "me/1",
        "Impersonate-Uid": "u-1",
        "Impersonate-Extra-Scopes%2fx": "deep",
    }

    main.request("GET", f"{HOME}/who/echo", headers=_as_joe(**forged))

    came = backend.last(f"{HOME}/who/echo")
    assert came.all("X-Remote-User") == ["joe"]
    assert came.all("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert came.all("X-Remote-Uid") == ["u-1"]
    assert came.all("X-Remote-Extra-scopes%2fx") == ["deep"]
    assert came.all("X-Other") == ["kept"]
    assert came.all("User-Agent") == ["me/1"]
    assert "evil" not in str(came.headers)
    assert not [name for name, _ in came.headers if name.lower().startswith("impersonate")]
    assert came.one("Authorization") is None
    assert came.peer == "front-proxy-client"


def test_the_backend_is_told_where_the_request_came_from(
    main: LiveServer, backend: Backend
) -> None:
    """Lines 15 and 16."""
    headers = {"X-Forwarded-For": "192.0.2.1", "Audit-Id": "mine", "X-Forwarded-Host": "evil"}

    answer = main.request("GET", f"{HOME}/from/echo?z=1&a=2", headers=headers)

    came = backend.last(f"{HOME}/from/echo")
    host = f"localhost:{backend.port}"
    assert came.target == f"{HOME}/from/echo?a=2&z=1"
    assert came.all("Host") == [host]
    assert came.all("X-Forwarded-For") == ["192.0.2.1, 127.0.0.1"]
    assert came.all("X-Forwarded-Host") == [host]
    assert came.all("X-Forwarded-Proto") == ["https"]
    assert came.all("X-Forwarded-Uri") == [f"{HOME}/from/echo"]
    assert came.all("Audit-Id") == ["mine"]
    assert dict(answer.headers)["audit-id"] == "mine"


def test_the_certificate_is_asked_for_by_the_name_of_the_service(backend: Backend) -> None:
    """Line 17."""
    assert set(backend.names) == {"echo.default.svc"}


def test_no_header_comes_twice(main: LiveServer, backend: Backend) -> None:
    """Better than kube-apiserver, which sends four of them twice."""
    answer = main.request("POST", f"{HOME}/echo", b"x")

    names = [name.lower() for name, _ in answer.headers]
    assert [names.count(name) for name in _OWN] == [1] * len(_OWN)
    told = {name.lower(): value for name, value in answer.headers}
    assert told["cache-control"] == "public, immutable"
    assert told["warning"] == '299 - "careful"'
    assert told["x-own"] == "mine"
    assert "of-the-backend" not in told.values()
    assert "access-control-allow-origin" not in told


def test_a_user_without_rights_is_refused_here(main: LiveServer, backend: Backend) -> None:
    """Line 12."""
    before = len(backend.requests)

    answer = main.request(
        "GET", f"{HOME}/namespaces/d/things/a", headers={"Impersonate-User": "joe"}
    )

    assert answer.status == 403
    assert answer.json["message"] == (
        f'things.{GROUP} "a" is forbidden: User "joe" cannot get resource "things" in API group '
        f'"{GROUP}" in the namespace "d"'
    )
    assert not [one for one in backend.requests[before:] if "things" in one.path]


def test_a_name_that_is_no_header_value_is_not_sent(main: LiveServer, backend: Backend) -> None:
    """Line 14: nothing may add a header line of its own."""
    headers = _as_joe(**{"Impersonate-Extra-Note": "a\tb"})

    answer = main.request("GET", f"{HOME}/tab/echo", headers=headers)

    assert answer.status == 201
    assert backend.last(f"{HOME}/tab/echo").all("X-Remote-Extra-note") == ["a\tb"]


def test_bodies_larger_than_our_own_limit_go_through(main: LiveServer, backend: Backend) -> None:
    """Line 13."""
    body = b"y" * 8_000_000

    answer = main.request("POST", f"{HOME}/large/echo", body)

    assert answer.body == body


def test_a_body_without_a_length_stays_chunked(main: LiveServer, backend: Backend) -> None:
    """Line 13."""
    connection = main.connection()
    headers = {"Authorization": f"Bearer {main.token}"}

    connection.request(
        "POST",
        f"{HOME}/chunked/echo",
        body=iter([b"one", b"two"]),
        headers=headers,
        encode_chunked=True,
    )
    answer = connection.getresponse()

    assert answer.read() == b"onetwo"
    connection.close()


def test_redirects_are_refused(main: LiveServer, backend: Backend) -> None:
    """Line 21."""
    answer = main.request("GET", f"{HOME}/redirect")

    assert answer.status == 502
    assert answer.body == (
        b"the backend attempted to redirect this request, which is not permitted"
    )
    assert "location" not in {name.lower() for name, _ in answer.headers}


def test_redirects_pass_where_the_operator_allows_them(scripts: Scripts) -> None:
    """Line 21."""
    allowed = AggregationSettings(refuse_redirects=False)
    with live_server(aggregation=allowed) as server, Backend(scripts) as other:
        register(server, other, GROUP)

        assert server.request("GET", f"{HOME}/redirect").status == 301
