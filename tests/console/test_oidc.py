"""Signing in with an issuer elsewhere, there and back as a browser goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from instar.server.access.identities import JwtSettings
from instar.tools.console.oidc import next_page
from instar.tools.console.settings import OidcSettings
from instar.tools.console.setup import console_front
from tests.console.support import Browser, cookie_lines
from tests.support.issuer import LocalIssuer, local_issuer
from tests.support.server import LiveServer, live_server

START = "/console/login/oidc"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIssuer]:
    with local_issuer(tmp_path_factory.mktemp("issuer")) as found:
        yield found


@pytest.fixture(scope="module")
def server(issuer: LocalIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    authority = tmp_path_factory.mktemp("authority") / "ca.crt"
    authority.write_text(issuer.authority)
    flags = {
        "issuer_url": issuer.url,
        "client_id": "console",
        "ca_file": authority,
        "username_claim": "sub",
        "username_prefix": "oidc:",
        "groups_claim": "",
        "groups_prefix": "",
        "signing_algs": issuer.key.public.algorithm,
        "required_claim": [],
    }
    settings = OidcSettings(issuer=issuer.url, client="console", authority=authority)
    with live_server(
        front=console_front(settings), tokens_of_others=JwtSettings(oidc=flags)
    ) as running:
        eventually(lambda: running.request("GET", "/api", token=issuer.token(aud="console")).status)
        yield running


def eventually(status: Callable[[], int]) -> None:
    """The issuer's keys are fetched in the background."""
    until = time.monotonic() + 20
    while status() == 401:
        assert time.monotonic() < until
        time.sleep(0.02)


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def test_a_person_signs_in_and_lands_where_they_wanted(
    server: LiveServer, issuer: LocalIssuer
) -> None:
    browser = Browser(server)
    offered = browser.request("GET", "/console/session").json["login"]["oidc"]

    away = browser.request("GET", f"{START}?next=/console/webhooks", page=False)
    back = issuer.consent(away.header("Location") or "")
    arrived = browser.request("GET", path_of(back), page=False)
    session = browser.request("GET", "/console/session").json

    assert offered == {"issuer": issuer.url, "start": START}
    assert "; SameSite=Lax" in cookie_lines(away)[0]
    assert (arrived.status, arrived.header("Location")) == (303, "/console/webhooks")
    assert session["user"]["username"] == "oidc:jane"
    assert session["how"] == "oidc"
    assert list(browser.cookies) == ["__Host-instar-console"]


def why(server: LiveServer, browser: Browser, path: str) -> str:
    answer = browser.request("GET", path, page=False)
    place = urlsplit(answer.header("Location") or "")
    assert (answer.status, place.path, place.query) == (303, "/console/", "signin=failed")
    assert not any("__Host-instar-console=" in line for line in cookie_lines(answer))
    return unquote(place.fragment.removeprefix("why="))


def test_a_callback_of_another_sign_in_is_refused(server: LiveServer, issuer: LocalIssuer) -> None:
    mine, other = Browser(server), Browser(server)
    mine.request("GET", START, page=False)
    away = other.request("GET", START, page=False)
    back = path_of(issuer.consent(away.header("Location") or ""))

    assert "another sign-in" in why(server, mine, back)
    assert "another browser" in why(server, Browser(server), back)


def test_a_refusal_by_the_issuer_is_reported(server: LiveServer, issuer: LocalIssuer) -> None:
    browser = Browser(server)
    away = browser.request("GET", START, page=False)
    back = path_of(issuer.consent(away.header("Location") or ""))
    state = back.partition("state=")[2]

    answer = f"{START}/callback?error=access_denied&error_description=not+you&state={state}"
    assert why(server, browser, answer) == "the issuer refused: not you"


def test_a_code_is_good_once(server: LiveServer, issuer: LocalIssuer) -> None:
    browser = Browser(server)
    away = browser.request("GET", START, page=False)
    back = path_of(issuer.consent(away.header("Location") or ""))
    kept = dict(browser.cookies)
    browser.request("GET", back, page=False)
    browser.cookies = kept

    assert "gives no token" in why(server, browser, back)


def test_a_token_for_another_sign_in_is_refused(
    server: LiveServer, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser(server)
    away = browser.request("GET", START, page=False)
    back = path_of(issuer.consent(away.header("Location") or ""))
    token = issuer.token(aud="console", nonce="another")
    monkeypatch.setattr(issuer, "exchange", lambda form: {"id_token": token})

    assert "another sign-in" in why(server, browser, back)


def test_a_token_that_the_server_does_not_take_is_refused(
    server: LiveServer, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser(server)
    away = browser.request("GET", START, page=False)
    back = path_of(issuer.consent(away.header("Location") or ""))
    token = issuer.token(aud="somebody-else")
    monkeypatch.setattr(issuer, "exchange", lambda form: {"id_token": token})

    assert "does not take" in why(server, browser, back)


def test_an_unreachable_issuer_is_reported(tmp_path: Path) -> None:
    settings = OidcSettings(issuer="https://127.0.0.1:9", client="console")
    with live_server(front=console_front(settings)) as server:
        assert "cannot be reached" in why(server, Browser(server), START)


def test_without_an_issuer_there_is_no_such_page(console: LiveServer) -> None:
    assert Browser(console).request("GET", START, page=False).status == 404


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("/console/crds/x", "/console/crds/x"),
        ("", "/console/"),
        ("https://evil.example.com/", "/console/"),
        ("//evil.example.com/console/", "/console/"),
        ("/console/\\evil", "/console/"),
        ("/console/\r\nSet-Cookie: a=b", "/console/"),
        ("/api/v1/namespaces", "/console/"),
    ],
)
def test_a_sign_in_leads_to_a_page_of_the_console(wanted: str, found: str) -> None:
    assert next_page(wanted) == found
