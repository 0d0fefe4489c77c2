"""Who is signed in is in a sealed cookie, and a cookie counts for nobody but our own page."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.server.identity import jwt
from instar.tools.console.cookies import fits, join_cookie, read_cookies, set_cookies
from instar.tools.console.sessions import Ended, NoSession, Sealer, Session, Sessions, session_of
from tests.console.support import Browser, cookie_lines
from tests.support.server import LiveServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SESSIONS = Sessions(Sealer(b"secret"))


def test_a_token_begins_a_session_that_the_page_cannot_read(console: LiveServer) -> None:
    answer = Browser(console).sign_in(console.token)

    [first, *_] = cookie_lines(answer)
    assert answer.json["user"]["username"] == "kubernetes-admin"
    assert answer.json["how"] == "token"
    assert first.startswith("__Host-instar-console=")
    for attribute in ("; Path=/", "; HttpOnly", "; Secure", "; SameSite=Strict", "; Max-Age="):
        assert attribute in first
    assert console.token not in answer.text
    assert console.token not in first


def test_a_session_asks_the_api_with_its_users_rights(browser: Browser) -> None:
    assert browser.request("GET", CRDS).status == 200
    assert browser.request("GET", "/console/session").json["authenticated"] is True


def test_a_cookie_alone_does_not_authenticate(browser: Browser) -> None:
    api = browser.request("GET", CRDS, page=False)
    session = browser.request("GET", "/console/session", page=False)

    assert api.status == 403
    assert "system:anonymous" in api.json["message"]
    assert session.json["authenticated"] is False


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example.com"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", [CRDS, "/console/session"])
def test_a_request_of_another_site_is_refused(
    browser: Browser, path: str, headers: dict[str, str]
) -> None:
    answer = browser.request("POST", path, {}, headers=headers)

    assert answer.status == 403
    assert answer.json["kind"] == "Status"


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_link_to_the_api_that_is_followed_shows_what_the_user_may_see(
    browser: Browser, site: str
) -> None:
    headers = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": site}

    answer = browser.request("GET", CRDS, page=False, headers=headers)

    assert answer.status == 200
    assert "sandbox" in (answer.header("Content-Security-Policy") or "")
    assert browser.request("POST", CRDS, {}, page=False, headers=headers).status == 403


def test_a_link_of_another_site_shows_nothing(browser: Browser) -> None:
    headers = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "cross-site"}

    assert browser.request("GET", CRDS, page=False, headers=headers).status == 403


def test_requests_from_the_consoles_own_origin_are_allowed(
    console: LiveServer, browser: Browser
) -> None:
    headers = {"Origin": console.url, "Sec-Fetch-Site": "same-origin"}

    assert browser.request("GET", CRDS, headers=headers).status == 200


def test_a_token_without_a_user_is_refused(console: LiveServer) -> None:
    answer = Browser(console).request("POST", "/console/session", {"token": "nobody"})

    assert answer.status == 401
    assert answer.json["details"]["causes"][0]["reason"] == "CredentialRefused"
    assert not cookie_lines(answer)


@pytest.mark.parametrize("body", [{}, {"token": ""}, {"token": 1}, [], "text"])
def test_a_body_that_is_not_a_sign_in_is_refused(console: LiveServer, body: object) -> None:
    answer = Browser(console).request("POST", "/console/session", body)

    assert answer.status == 400
    assert answer.json["kind"] == "Status"


def test_a_form_of_another_site_cannot_sign_in(console: LiveServer) -> None:
    answer = console.request(
        "POST", "/console/session", b"token=x", content_type="text/plain", token=None
    )

    assert answer.status == 415


@pytest.mark.parametrize("shown", ["Bearer nobodys", "Basic bm9ib2R5"])
def test_an_unknown_user_gets_no_view_computed(console: LiveServer, shown: str) -> None:
    body = {"new": {"text": "kind: CustomResourceDefinition"}}
    headers = {"Authorization": shown}

    answer = console.request("POST", "/console/api/review", body, headers=headers, token=None)

    assert answer.status in (401, 403), answer.text


def test_without_a_session_the_page_gets_401_and_no_anonymous_access(console: LiveServer) -> None:
    answer = Browser(console).request("GET", CRDS)

    assert answer.status == 401
    assert answer.json["details"]["causes"][0]["reason"] == "NotSignedIn"


def test_a_cookie_that_was_changed_ends_the_session(browser: Browser) -> None:
    name, value = next(iter(browser.cookies.items()))
    browser.cookies[name] = value[:-4] + ("AAAA" if value[-4:] != "AAAA" else "BBBB")

    answer = browser.request("GET", CRDS)

    assert answer.status == 401
    assert answer.json["details"]["causes"][0]["reason"] == "SessionExpired"


def test_signing_out_takes_the_cookie_away(browser: Browser) -> None:
    answer = browser.request("DELETE", "/console/session")

    assert answer.json["authenticated"] is False
    assert browser.cookies == {}


def test_a_sealed_session_shows_nothing_and_opens_as_it_was() -> None:
    session = Session("token", "a-very-secret-token", 2000.0)

    sealed = SESSIONS.seal(session)

    assert SESSIONS.open(sealed, now=1999.0) == session
    assert b"secret" not in jwt.decode_base64url(sealed)
    assert SESSIONS.seal(session) != sealed


def test_a_session_ends_with_its_time() -> None:
    sealed = SESSIONS.seal(Session("token", "t", 2000.0))

    with pytest.raises(Ended):
        SESSIONS.open(sealed, now=2000.0)


def test_another_secret_opens_nothing() -> None:
    sealed = SESSIONS.seal(Session("token", "t", 2000.0))

    with pytest.raises(NoSession):
        Sessions(Sealer(b"another")).open(sealed, now=0.0)


@given(st.text(max_size=200))
def test_an_arbitrary_cookie_is_not_a_session(text: str) -> None:
    with pytest.raises(NoSession):
        SESSIONS.open(text, now=0.0)


def test_a_session_does_not_outlive_its_token() -> None:
    token = jwt.append_signature(jwt.unsigned({"alg": "none"}, {"exp": 1060}), b"")

    assert session_of("token", token, now=1000.0).expires == 1060
    assert session_of("token", "opaque", now=1000.0).expires == 1000 + 12 * 3600


@given(st.text(alphabet=string.ascii_letters + string.digits + "-_", max_size=20_000))
def test_a_value_of_any_size_is_read_back_from_its_cookies(value: str) -> None:
    assert fits(value)
    lines = set_cookies("name", value, 60, secure=True, same_site="Strict")
    sent = "; ".join(line.partition(";")[0] for line in lines if "Max-Age=0" not in line)

    assert join_cookie(read_cookies([sent]), "name") == value
    assert all(len(line) < 4096 for line in lines)
