"""``instar serve`` and a TLS webhook, each a process of its own, as they are in production."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import yaml

from instar.base.json_values import Object
from tests.support.server import Answer, LiveServer
from tests.webhooks.support import APPLY, Watching, Widgets

ROOT = Path(__file__).resolve().parents[2]


class WebhookProcess:
    def __init__(self) -> None:
        self.process = _python("-m", "tests.webhooks.webhook_process")
        self.conversion: Object = json.loads(self._line())

    def fault(self, name: str | None) -> None:
        self._ask(f"fault {name or '-'}")

    @property
    def reviews(self) -> int:
        return int(self._ask("count"))

    def _ask(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


class ServerProcess(LiveServer):
    """The same helpers, with the address from a kubeconfig instead of an object in memory."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._url = cluster["server"]
        self._token = config["users"][0]["user"]["token"]
        self._ca = base64.b64decode(cluster["certificate-authority-data"]).decode()

    @property
    def url(self) -> str:
        return cast(str, self._url)

    @property
    def token(self) -> str:
        return cast(str, self._token)

    def connection(self, timeout: float = 30.0) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cadata=self._ca)
        parts = urlsplit(self.url)
        return http.client.HTTPSConnection(
            cast(str, parts.hostname), parts.port, context=context, timeout=timeout
        )


def _python(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *args],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("serve")
    kubeconfig = folder / "kubeconfig"
    process = _python(
        *("-m", "instar", "serve", "--listen", "127.0.0.1:0", "--kubeconfig", str(kubeconfig)),
        *("--storage", f"sqlite:{folder / 'instar.db'}", "--webhook-timeout", "1"),
        *("--converter", "widgets.inprocess.example.com=tests.webhooks.planted:converter"),
    )
    with _ended(process):
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        yield ServerProcess(kubeconfig)


@pytest.fixture
def webhook() -> Iterator[WebhookProcess]:
    started = WebhookProcess()
    with _ended(started.process):
        yield started


def _works(answer: Answer) -> Any:
    assert answer.status in (200, 201), answer.text
    return answer.json


def test_every_verb_through_both_versions(served: ServerProcess, webhook: WebhookProcess) -> None:
    widgets = Widgets(served, webhook.conversion)
    watch = Watching(served, widgets.path("v2"))

    created = widgets.create("v2", "a", port=2, finalizers=["example.com/hold"])
    body = _works(widgets.get("v2", "a"))
    updated = _works(served.request("PUT", widgets.path("v2", "a"), {**body, "spec": {}}))
    patched = _works(widgets.patch("v2", "a", {"spec": {"hostPort": "x:3", "replicas": 1}}))
    config = {**widgets.widget("v2", "a"), "spec": {"replicas": 4}}
    path = widgets.path("v2", "a") + "?fieldManager=me&force=true"
    applied = _works(served.request("PATCH", path, config, content_type=APPLY))
    status = _works(widgets.patch("v2", "a/status", {"status": {"phase": "x"}}))
    scaled = _works(widgets.patch("v2", "a/scale", {"spec": {"replicas": 5}}))
    listed = _works(widgets.get("v2"))["items"]
    _works(served.request("DELETE", widgets.path("v2", "a")))
    _works(widgets.patch("v2", "a", {"metadata": {"finalizers": None}}))

    assert (created["spec"]["hostPort"], updated["spec"]) == ("h:2", {})
    assert (patched["spec"]["hostPort"], applied["spec"]["replicas"]) == ("x:3", 4)
    assert (status["status"], scaled["spec"]) == ({"phase": "x"}, {"replicas": 5})
    assert [item["spec"] for item in listed] == [{"hostPort": "x:3", "replicas": 5}]
    events = watch.wait_for(lambda lines: lines[-1]["type"] == "DELETED" if lines else False)
    assert {event["object"]["apiVersion"] for event in events} == {f"{widgets.group}/v2"}
    watch.close()


def test_a_hanging_webhook_and_a_killed_one_are_reported(
    served: ServerProcess, webhook: WebhookProcess
) -> None:
    widgets = Widgets(served, webhook.conversion)
    widgets.create("v1", "a")

    os.kill(webhook.process.pid, signal.SIGSTOP)
    stopped = widgets.get("v2", "a")
    os.kill(webhook.process.pid, signal.SIGCONT)
    running = widgets.get("v2", "a")
    widgets.patch("v1", "a", {"spec": {"port": 8}})
    webhook.process.kill()
    webhook.process.wait()
    killed = widgets.get("v2", "a")

    assert (stopped.status, running.status, killed.status) == (500, 200, 500)
    assert "context deadline exceeded" in stopped.json["message"]
    assert "connection refused" in killed.json["message"]
    assert widgets.get("v1", "a").json["spec"]["port"] == 8


def test_a_fault_is_reported_until_its_cause_is_gone(
    served: ServerProcess, webhook: WebhookProcess
) -> None:
    widgets = Widgets(served, webhook.conversion)
    widgets.create("v1", "a")

    webhook.fault("failed")
    failed = widgets.get("v2", "a")
    webhook.fault(None)

    assert failed.json["message"].endswith("failed: cannot be done")
    assert widgets.get("v2", "a").status == 200
    assert widgets.get("v2", "a").status == 200
    assert webhook.reviews == 2


def test_a_converter_given_on_the_command_line_runs_in_the_server(
    served: ServerProcess, webhook: WebhookProcess
) -> None:
    widgets = Widgets(served, webhook.conversion, group="inprocess.example.com")

    created = widgets.create("v2", "a", port=4)

    assert created["spec"]["hostPort"] == "h:4"
    assert widgets.get("v1", "a").json["spec"] == {"host": "h", "port": 4, "replicas": 1}
    assert webhook.reviews == 0
