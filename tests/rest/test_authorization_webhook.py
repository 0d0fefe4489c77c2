"""Another server decides: what it is asked, whom it overrules, and what happens when it is away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from instar.server.access.webhook_authorizer import WebhookAuthorizer
from tests.rest.support import failed
from tests.support.server import Answer, LiveServer, live_server

MAPS = "/api/v1/namespaces/default/configmaps"


class Judge:
    """Answers by the user's name; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.broken = False

    def status(self, spec: Any) -> Any:
        match spec["user"]:
            case "yes":
                return {"allowed": True, "reason": "a friend"}
            case "never":
                return {"allowed": False, "denied": True, "reason": "banned"}
            case "both":
                return {"allowed": True, "denied": True}
            case "odd":
                return {"allowed": "true"}
        return {"allowed": False, "reason": "not known here"}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Judge, Path]]:
    found = Judge()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append((self.path, self.headers.get("Authorization"), review))
            self.send_response(500 if found.broken else 200)
            self.end_headers()
            answer = {**review, "status": found.status(review["spec"])}
            self.wfile.write(b"broken" if found.broken else json.dumps(answer).encode())

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    config = tmp_path_factory.mktemp("webhook") / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": f"http://127.0.0.1:{server.server_port}/authorize"},
            }
        ],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    config.write_text(json.dumps(document))
    yield found, config
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture(scope="module")
def judged(
    judge: tuple[Judge, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    file = tmp_path_factory.mktemp("users") / "tokens.csv"
    names = ("yes", "never", "both", "odd", "other", "late")
    file.write_text("".join(f'{name}-token,{name},u-{name},"devs"\n' for name in names))
    settings = {"authorization": "Webhook,RBAC", "authorization_webhook": judge[1]}
    with live_server(token_file=file, **settings) as server:
        yield server


def get(server: LiveServer, user: str, path: str = MAPS) -> Answer:
    return server.request("GET", path, token=f"{user}-token")


def test_the_webhook_gets_every_attribute_of_the_request(
    judged: LiveServer, judge: tuple[Judge, Path]
) -> None:
    judge[0].asked.clear()
    assert get(judged, "yes").status == 200
    [(path, credential, review)] = judge[0].asked
    assert (path, credential) == ("/authorize", "Bearer secret")
    assert review["spec"] == {
        "user": "yes",
        "groups": ["devs", "system:authenticated"],
        "uid": "u-yes",
        "resourceAttributes": {
            "namespace": "default",
            "verb": "list",
            "version": "v1",
            "resource": "configmaps",
        },
    }
    assert get(judged, "yes").status == 200
    assert len(judge[0].asked) == 1
    assert get(judged, "yes", "/metrics").status == 200
    assert judge[0].asked[-1][2]["spec"]["nonResourceAttributes"] == {
        "path": "/metrics",
        "verb": "get",
    }


def test_a_no_is_final_and_no_opinion_asks_the_next(judged: LiveServer) -> None:
    start = 'configmaps is forbidden: User "never" cannot list resource "configmaps" in API group '
    text = f'{start}"" in the namespace "default": banned'
    failed(get(judged, "never"), 403, "Forbidden", text)
    assert get(judged, "never", "/api").status == 403
    assert get(judged, "other", "/api").status == 200
    assert get(judged, "other").status == 403


def test_nonsense_allows_nothing(judged: LiveServer) -> None:
    assert get(judged, "both").status == 403
    assert get(judged, "odd").status == 403


def test_requests_of_system_masters_skip_the_webhook(
    judged: LiveServer, judge: tuple[Judge, Path]
) -> None:
    judge[0].asked.clear()
    assert judged.request("GET", MAPS).status == 200
    assert judge[0].asked == []


def test_reviews_tell_a_denial(judged: LiveServer) -> None:
    spec = {"user": "never", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = judged.request("POST", path, {"spec": spec})
    assert answer.json["status"] == {"allowed": False, "denied": True, "reason": "banned"}
    rules = judged.request(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {"spec": {"namespace": "default"}},
    )
    assert rules.json["status"]["incomplete"] is True


def test_an_unreachable_authorization_webhook_allows_no_request(
    judged: LiveServer, judge: tuple[Judge, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("instar.wire.client.review_client._FACTOR", 0.0)
    judge[0].broken = True
    try:
        assert get(judged, "late").status == 500
    finally:
        judge[0].broken = False
    assert get(judged, "late").status == 403


def test_a_file_that_cannot_be_used_is_reported_at_the_start(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("[")
    for path in (None, tmp_path / "missing", broken):
        with pytest.raises(ValueError, match="authorization"):
            WebhookAuthorizer.of(path, (1.0, 1.0))
