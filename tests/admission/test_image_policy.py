"""ImagePolicyWebhook: what its webhook is asked, and what becomes of its answers.

Requests, answers and audit annotations are those of kube-apiserver 1.36.4 with such a webhook.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from instar.base.errors import ServiceUnavailable
from instar.base.json_values import Object
from instar.server.lifecycle.admission_config import image_policy
from instar.server.registry.admission.plugin_names import HERE
from instar.server.registry.admission.plugins.image_policy import (
    IMAGE_POLICY,
    BadImagePolicy,
    ImagePolicy,
    ImagePolicyWebhook,
    read_image_policy,
)
from tests.support.server import Answer, LiveServer, live_server

PODS = "/api/v1/namespaces/default/pods"


class Judge:
    """A webhook that decides by the first image."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def answer(self, review: Object) -> tuple[int, Any]:
        self.asked.append(review)
        image = review["spec"]["containers"][0]["image"]
        status: Object = {"allowed": image.startswith("good"), "auditAnnotations": {"a": "b"}}
        if image == "told":
            status["reason"] = "no such luck"
        if image == "403":
            return 403, {"kind": "Status", "message": "go away", "reason": "Forbidden", "code": 403}
        if image == "pod":
            return 200, {"apiVersion": "v1", "kind": "Pod", "status": status}
        if image == "kindless":
            return 200, {"status": {"allowed": True}}
        return 200, {**review, "status": status}


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def kubeconfig(judge: Judge, tmp_path: Path) -> Iterator[Path]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code, answer = judge.answer(review)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        path = tmp_path / "webhook.kubeconfig"
        path.write_text(json.dumps(_kubeconfig(f"http://127.0.0.1:{server.server_port}/policy")))
        yield path
        server.shutdown()
        thread.join(10)


def _kubeconfig(url: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def configured(folder: Path, **policy: Any) -> Path:
    path = folder / "admission.yaml"
    plugin = {"name": IMAGE_POLICY, "configuration": {"imagePolicy": policy}}
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    path.write_text(json.dumps({**head, "plugins": [plugin]}))
    return path


@pytest.fixture
def server(kubeconfig: Path, tmp_path: Path) -> Iterator[LiveServer]:
    path = configured(tmp_path, kubeConfigFile=str(kubeconfig), retryBackoff=1)
    with live_server(admission_plugins=HERE | {IMAGE_POLICY}, admission_config=path) as found:
        yield found


def run(server: LiveServer, image: str, **metadata: Any) -> Answer:
    spec = {
        "containers": [{"name": "a", "image": image}],
        "initContainers": [{"name": "b", "image": "init"}],
    }
    named = {"name": f"p-{image}", **metadata}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}
    return server.request("POST", PODS, body)


def test_the_webhook_sees_images_its_annotations_and_the_namespace(
    server: LiveServer, judge: Judge
) -> None:
    answer = run(server, "good", annotations={"x.image-policy.k8s.io/t": "1", "other": "2"})

    assert answer.status == 201
    assert judge.asked == [
        {
            "kind": "ImageReview",
            "apiVersion": "imagepolicy.k8s.io/v1alpha1",
            "metadata": {},
            "spec": {
                "containers": [{"image": "good"}, {"image": "init"}],
                "annotations": {"x.image-policy.k8s.io/t": "1"},
                "namespace": "default",
            },
            "status": {"allowed": False},
        }
    ]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("bad", 'pods "p-bad" is forbidden: one or more images rejected by webhook backend'),
        (
            "told",
            'pods "p-told" is forbidden: image policy webhook backend denied one or more images: '
            "no such luck",
        ),
        ("403", "go away"),
    ],
)
def test_refused_images_are_refused_in_upstreams_words(
    server: LiveServer, image: str, message: str
) -> None:
    answer = run(server, image)

    assert (answer.status, answer.json["message"]) == (403, message)


def test_an_answer_of_another_kind_refuses_and_one_without_a_kind_counts(
    server: LiveServer,
) -> None:
    assert run(server, "pod").status == 403
    assert run(server, "kindless").status == 201


def test_responses_are_cached_and_ephemeral_containers_are_sent_alone(
    server: LiveServer, judge: Judge
) -> None:
    run(server, "good")
    server.request(
        "PATCH", f"{PODS}/p-good", {"metadata": {"labels": {"a": "b"}}}, content_type=_MERGE
    )
    server.request(
        "PATCH", f"{PODS}/p-good/status", {"status": {"phase": "Running"}}, content_type=_MERGE
    )
    added = {"spec": {"ephemeralContainers": [{"name": "e", "image": "told"}]}}
    answer = server.request(
        "PATCH", f"{PODS}/p-good/ephemeralcontainers", added, content_type=_MERGE
    )

    assert answer.status == 403
    assert [each["spec"]["containers"] for each in judge.asked] == [
        [{"image": "good"}, {"image": "init"}],
        [{"image": "told"}],
    ]


_MERGE = "application/merge-patch+json"


def test_a_webhook_that_fails_decides_by_default_allow(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "nowhere"
    kubeconfig.write_text(json.dumps(_kubeconfig("http://127.0.0.1:1/policy")))
    found = {}
    for allows in (True, False):
        path = configured(
            tmp_path, kubeConfigFile=str(kubeconfig), retryBackoff=-1, defaultAllow=allows
        )
        plugins = HERE | {IMAGE_POLICY}
        with live_server(admission_plugins=plugins, admission_config=path) as server:
            found[allows] = run(server, "good")

    assert found[True].status == 201
    assert found[False].status == 403
    assert found[False].json["message"].startswith('pods "p-good" is forbidden: ')


def test_an_approval_is_cached_as_long_as_configured() -> None:
    now, asked = [0.0], []

    async def post(review: Object) -> Object:
        asked.append(review)
        if now[0] > 100:
            raise ServiceUnavailable("away")
        return {"status": {"allowed": True}}

    plugin = ImagePolicyWebhook(
        ImagePolicy(Path("k"), allow_seconds=10, default_allow=True), post, lambda: now[0]
    )
    notes: dict[str, str] = {}
    operation = _operation(notes)
    for moment in (0.0, 9.0, 11.0, 200.0):
        now[0] = moment
        waiting = plugin.validate(operation)
        assert waiting is not None
        asyncio.run(_awaited(waiting))

    assert len(asked) == 3
    assert notes == {"imagepolicywebhook.image-policy.k8s.io/failed-open": "true"}


def _operation(notes: dict[str, str]) -> Any:
    from types import SimpleNamespace

    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"image": "i"}]}}
    return SimpleNamespace(
        obj=pod,
        subresource="",
        name="p",
        target=SimpleNamespace(namespace="default"),
        annotate=notes.__setitem__,
    )


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (None, "no config specified"),
        ({}, "kubeConfigFile: expected the path of a kubeconfig"),
        (
            {"kubeConfigFile": "k", "allowTTL": 1801},
            "valid value is between 1s and 30m0s, got 1801",
        ),
        ({"kubeConfigFile": "k", "retryBackoff": 300001}, "between 1ns and 5m0s, got 300001"),
        ({"kubeConfigFile": "k", "denyTTL": "1"}, "denyTTL: expected a whole number"),
        ({"kubeConfigFile": "k", "defaultAllow": 1}, "defaultAllow: expected true or false"),
    ],
)
def test_each_mistake_in_the_configuration_is_reported(policy: Any, told: str) -> None:
    with pytest.raises(BadImagePolicy, match=told):
        read_image_policy({"imagePolicy": policy})


def test_zero_means_the_default_and_minus_one_means_none() -> None:
    numbers = {"allowTTL": -1, "denyTTL": 0, "retryBackoff": 250}

    found = read_image_policy({"imagePolicy": {"kubeConfigFile": "k", **numbers}})

    assert found == ImagePolicy(Path("k"), 0.0, 30.0, 0.25, default_allow=False)


def test_without_a_configuration_the_server_does_not_start() -> None:
    with pytest.raises(ValueError, match="no ImagePolicyWebhook config specified"):
        image_policy(None)


async def _awaited(waiting: Awaitable[None]) -> None:
    await waiting
