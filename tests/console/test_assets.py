"""Pages come from the package, with a policy that lets nothing else in."""

from __future__ import annotations

import asyncio
import gzip
import os
from pathlib import Path

import pytest

from instar.base.errors import NotFound
from instar.server.http.compress import compress
from instar.server.http.messages import Request
from instar.tools.console.assets import Assets, is_hashed
from tests.console.support import Browser
from tests.support.server import LiveServer, live_server


def asked(path: str, **headers: str) -> Request:
    sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return Request("GET", f"/console/{path}", {}, sent)


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "assets" / "app-0123abcd.js").write_text("export {}")
    (tmp_path / "assets" / "app-0123abcd.js.br").write_bytes(b"brotli")
    (tmp_path / "assets" / "notes.md").write_text("not served")
    return Assets(tmp_path)


def test_a_hashed_file_may_be_kept_for_ever(assets: Assets) -> None:
    response = assets.respond(asked(""), "assets/app-0123abcd.js")

    assert (b"cache-control", b"public, max-age=31536000, immutable") in response.headers
    assert (b"content-type", b"text/javascript; charset=utf-8") in response.headers


def test_a_deep_link_gets_the_page(assets: Assets) -> None:
    response = assets.respond(asked(""), "crds/widgets.example.com")

    assert b"".join(response.chunks) == b"<!doctype html>"
    assert (b"cache-control", b"no-cache") in response.headers


@pytest.mark.parametrize("path", ["assets/gone-0123abcd.js", "assets/notes.md", "assets/../x"])
def test_a_path_outside_of_the_build_is_not_found(assets: Assets, path: str) -> None:
    with pytest.raises(NotFound):
        assets.respond(asked(""), path)


def test_the_page_is_not_sent_twice(assets: Assets) -> None:
    first = assets.respond(asked(""), "")
    tag = dict(first.headers)[b"etag"].decode()

    again = assets.respond(asked("", if_none_match=tag), "")

    assert again.status == 304


def test_the_smallest_form_that_the_browser_reads(assets: Assets) -> None:
    path = "assets/app-0123abcd.js"
    plain = assets.respond(asked(""), path)
    packed = assets.respond(asked("", accept_encoding="gzip, br;q=0"), path)
    best = assets.respond(asked("", accept_encoding="gzip, deflate, br, zstd"), path)

    assert b"".join(plain.chunks) == b"export {}"
    assert gzip.decompress(b"".join(packed.chunks)) == b"export {}"
    assert b"".join(best.chunks) == b"brotli"


def test_a_large_file_is_not_packed_twice(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "app-0123abcd.js").write_bytes(content)
    request = asked("", accept_encoding="gzip")
    response = Assets(tmp_path).respond(request, "assets/app-0123abcd.js")

    asyncio.run(compress(request, response))

    assert gzip.decompress(b"".join(response.chunks)) == content


def test_an_installation_without_pages_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Assets(tmp_path).respond(asked(""), "")


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        ("app-0123abcd.js", True),
        ("app.B4x_9zQ1.css", True),
        ("app-ABCDEFGH.js", True),
        ("app.js", False),
        ("console-settings.js", False),
        ("0123abcd.js", False),
    ],
)
def test_names_that_change_with_their_content(name: str, hashed: bool) -> None:
    assert is_hashed(name) is hashed


@pytest.mark.parametrize("path", ["/console/", "/console/session", "/console/api/nothing"])
def test_every_answer_carries_the_policy(console: LiveServer, path: str) -> None:
    answer = Browser(console).request("GET", path)

    policy = answer.header("Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert len([name for name, _ in answer.headers if name.lower() == "cache-control"]) == 1


def test_the_console_is_where_its_name_says(console: LiveServer) -> None:
    answer = console.request("GET", "/console", token=None)

    assert (answer.status, answer.header("Location")) == (308, "/console/")
    assert console.request("GET", "/consoles", token=None).status == 403


def test_pages_are_only_read(console: LiveServer) -> None:
    assert Browser(console).request("PUT", "/console/", {}).status == 405


def test_an_unknown_console_path_is_a_status(browser: Browser) -> None:
    answer = browser.request("GET", "/console/api/nothing")

    assert answer.status == 404
    assert answer.json["kind"] == "Status"


def test_a_server_without_the_console_serves_no_console_page() -> None:
    with live_server() as server:
        assert server.request("GET", "/console/").status == 404
