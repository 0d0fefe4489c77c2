"""``instar console``: any cluster through its public API, for the browser that has the link."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from instar.cli.main import main
from tests.console.support import Browser
from tests.console.worlds import renaming, store, widget, widgets
from tests.support.server import Answer, LiveServer
from tests.support.webhook import Webhook

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Local:
    """``instar console`` as a process, and a way to talk to it."""

    token = ""

    def __init__(self, kubeconfig: Path) -> None:
        command = [sys.executable, "-m", "instar", "console", "--kubeconfig", str(kubeconfig)]
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        url = urlsplit(line.split()[2])
        self.place, self.link = url.netloc, url.fragment.removeprefix("link=")

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(self.place, timeout=30)
        sent = {"Content-Type": "application/json", **(headers or {})}
        data = None if body is None else orjson.dumps(body)
        try:
            connection.request(method, path, body=data, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(20) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def local(console: LiveServer) -> Iterator[Local]:
    running = Local(console.kubeconfig)
    yield running
    running.end()


@pytest.fixture(scope="module")
def visitor(local: Local) -> Browser:
    browser = Browser(local)
    answer = browser.request("POST", "/console/session", {"link": local.link})
    assert answer.status == 201, answer.text
    assert answer.json["mode"] == "cluster"
    assert answer.json["how"] == "kubeconfig"
    return browser


def test_the_link_is_good_once(local: Local, visitor: Browser) -> None:
    again = Browser(local).request("POST", "/console/session", {"link": local.link})

    assert again.status == 401


def test_requests_go_to_the_cluster_with_the_kubeconfigs_credentials(
    console: LiveServer, visitor: Browser
) -> None:
    console.create_crd(widgets("proxied.example.com"))

    found = visitor.request("GET", f"{CRDS}?limit=500")

    names = [item["metadata"]["name"] for item in found.json["items"]]
    assert "widgets.proxied.example.com" in names
    assert visitor.request("GET", f"{CRDS}/nobody.example.com").json["code"] == 404


def test_a_watch_continues(console: LiveServer, local: Local, visitor: Browser) -> None:
    console.create_crd(widgets("watched.example.com"))
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    headers = {"X-Instar-Console": "1", "Cookie": cookie}

    with contextlib.closing(http.client.HTTPConnection(local.place, timeout=30)) as connection:
        path = "/apis/watched.example.com/v1/widgets?watch=1"
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as stream:
            store(console, widget("watched.example.com", "late", width=1))
            event = orjson.loads(stream.readline())

    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "late")


@pytest.mark.parametrize("path", [CRDS, "/console/api/overview", "/api"])
def test_only_the_signed_in_browser_uses_the_credentials(local: Local, path: str) -> None:
    bare = local.request("GET", path)
    page = local.request("GET", path, headers={"X-Instar-Console": "1"})
    token = local.request("GET", path, headers={"Authorization": "Bearer x"})

    assert (bare.status, page.status, token.status) == (401, 401, 401)


def test_another_name_that_leads_here_is_refused(local: Local, visitor: Browser) -> None:
    answer = visitor.request("GET", CRDS, headers={"Host": "evil.example.com"})

    assert answer.status == 403


@pytest.mark.parametrize("place", ["@evil.example.com/", ".evil.example.com/", ":1@evil/", "*"])
def test_credentials_go_to_the_cluster_and_to_no_place_a_request_names(
    visitor: Browser, place: str
) -> None:
    answer = visitor.request("CONNECT", place)

    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


def test_the_pages_are_the_same(visitor: Browser) -> None:
    overview = visitor.request("GET", "/console/api/overview")
    home = visitor.request("GET", "/")

    assert overview.status == 200
    assert (home.status, home.header("Location")) == (308, "/console/")


def test_a_pasted_object_is_converted_there(console: LiveServer, visitor: Browser) -> None:
    group = "there.example.com"
    with Webhook(renaming) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        shown = {"object": widget(group, "a", at="v1beta1", size=2)}

        answer = visitor.request("POST", "/console/api/convert", shown)

    assert answer.json["versions"][1]["object"]["spec"] == {"width": 2}


@pytest.mark.parametrize("place", ["0.0.0.0:0", "10.0.0.1:80", "nonsense", "127.0.0.1:99999"])
def test_it_listens_on_this_machine_only(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", "--listen", place]) == 2
    assert "--listen" in capsys.readouterr().err
