"""Whatever is sent or stored: an answer, never a traceback, and the server goes on."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from instar.base.json_values import Object
from instar.base.limits import MAX_BODY
from tests.console.support import Browser
from tests.console.worlds import TEXT, store, widget, widgets
from tests.support.crds import crd, fields, version
from tests.support.server import LiveServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOSTILE = "<script>alert(1)</script>\u202e\u0000'\";--"


def test_an_object_of_almost_three_megabytes_is_converted(
    console: LiveServer, browser: Browser
) -> None:
    console.create_crd(widgets("large.example.com"))
    shown = {"object": widget("large.example.com", "a", legacy="x" * (MAX_BODY - 1000))}

    assert browser.request("POST", "/console/api/convert", shown).status == 200


def test_more_than_a_body_may_be_is_refused(browser: Browser) -> None:
    answer = browser.request("POST", "/console/api/review", {"new": {"text": "x" * (MAX_BODY + 1)}})

    assert answer.status == 413
    assert answer.json["kind"] == "Status"


def test_a_crd_with_ten_thousand_fields_is_shown(console: LiveServer, browser: Browser) -> None:
    many = {f"field{number}": TEXT for number in range(10_000)}
    large = crd(version("v1", fields(spec=fields(**many))), group="wide.example.com")
    console.create_crd(large)
    name = "foos.wide.example.com"

    counted = browser.request("GET", f"/console/api/crds/{name}/fields")
    seen = browser.request("GET", f"/console/api/crds/{name}/versions")

    assert len(counted.json["never"]) == 10_001
    assert seen.status == 200


@pytest.mark.parametrize("name", ["名前", "نام", "a/b", "..", ".", "", "%00", HOSTILE, "x" * 5000])
@pytest.mark.parametrize(
    "path",
    [
        "crds/{}/versions",
        "crds/{}/migration",
        "crds/{}/objects/{}/a",
        "crds/widgets.example.com/objects/{}/{}",
        "crds/{}/fields?most={}",
        "{}",
    ],
)
def test_any_name_in_a_path_is_an_answer(browser: Browser, path: str, name: str) -> None:
    answer = browser.request("GET", f"/console/api/{path.replace('{}', quote(name, safe=''))}")

    assert 400 <= answer.status < 500
    assert answer.json["kind"] == "Status"


@pytest.mark.parametrize("action", ["migration/start", "migration/verify", "versions/v1/serve"])
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x"])
def test_any_name_in_the_path_of_an_action_is_an_answer(
    browser: Browser, name: str, action: str
) -> None:
    answer = browser.request("POST", f"/console/api/crds/{quote(name, safe='')}/{action}", {})

    assert 400 <= answer.status < 500


@pytest.mark.parametrize(
    "path", ["versions", "fields", "migration", "objects/default/a", "migration/start"]
)
def test_a_crd_of_which_no_version_is_served_is_an_answer(
    console: LiveServer, browser: Browser, path: str
) -> None:
    unserved = crd(version("v1", fields(spec=TEXT)), group="unserved.example.com")
    if console.request("GET", f"{CRDS}/foos.unserved.example.com").status == 404:
        console.create_crd(unserved)
        unserved["spec"]["versions"][0]["served"] = False
        patch = {"spec": {"versions": unserved["spec"]["versions"]}}
        answer = console.request(
            "PATCH",
            f"{CRDS}/foos.unserved.example.com",
            patch,
            content_type="application/merge-patch+json",
        )
        assert answer.status == 200
    method = "POST" if path.endswith("start") else "GET"

    answer = browser.request(
        method,
        f"/console/api/crds/foos.unserved.example.com/{path}",
        {} if method == "POST" else None,
    )

    assert answer.status < 500


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"1", b'{"a":' * 2000, b'"\xff"', b'{"crd": {"a": 1}}'],
)
@pytest.mark.parametrize("path", ["review", "convert", "check", "crds/x/versions/v1/serve"])
def test_any_body_is_an_answer(browser: Browser, path: str, body: bytes) -> None:
    answer = browser.request("POST", f"/console/api/{path}", body)

    assert 400 <= answer.status < 500
    assert answer.json["kind"] == "Status"


@pytest.mark.parametrize(
    "asked",
    [
        {"examples": -1},
        {"examples": 10**9},
        {"seconds": "long"},
        {"laws": "all"},
        {"laws": ["none"]},
        {"versions": ["v9"]},
        {"seed": True},
    ],
)
def test_a_check_that_makes_no_sense_is_refused(
    console: LiveServer, browser: Browser, asked: Object
) -> None:
    name = "widgets.senseless.example.com"
    if console.request("GET", f"{CRDS}/{name}").status == 404:
        console.create_crd(widgets("senseless.example.com"))

    answer = browser.request("POST", "/console/api/check", {"crd": name, **asked})

    assert answer.status == 400, answer.text


def test_the_content_of_an_object_is_shown_as_data(console: LiveServer, browser: Browser) -> None:
    group = "hostile.example.com"
    console.create_crd(widgets(group))
    text = HOSTILE.replace("\u0000", "")
    store(console, widget(group, "a", legacy=text))

    answer = browser.request("GET", f"/console/api/crds/widgets.{group}/objects/default/a")

    assert answer.header("Content-Type") == "application/json"
    assert answer.json["versions"][1]["object"]["spec"]["legacy"] == text
