"""The ServiceAccount plugin: the account of a pod, its token, and the Secrets it allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.server.registry.admission.plugin_names import HERE
from tests.support.server import Answer, LiveServer, live_server

Json = dict[str, Any]
CORE = "/api/v1/namespaces/default"
ENFORCE = {"kubernetes.io/enforce-mountable-secrets": "true"}
MIRROR = {"kubernetes.io/config.mirror": "x"}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    plugins = HERE | {"ServiceAccount"}
    with live_server(
        storage="memory:", bootstrap_objects=True, admission_plugins=plugins
    ) as running:
        limited = {"name": "limited", "annotations": ENFORCE}
        account = {"metadata": limited, "secrets": [{"name": "s"}]}
        running.request("POST", f"{CORE}/serviceaccounts", account)
        yield running


def pod(name: str, annotations: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": "c", "image": "i", **spec.pop("container", {})}]
    return {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"containers": containers, **spec},
    }


def sent(server: LiveServer, body: Json) -> Answer:
    return server.request("POST", f"{CORE}/pods?dryRun=All", body)


def from_env(name: str) -> Json:
    reference = {"secretKeyRef": {"name": name, "key": "k"}}
    return {"env": [{"name": "E", "valueFrom": reference}]}


def from_volume(name: str) -> Json:
    return {"name": "v", "secret": {"secretName": name}}


def test_a_pod_of_a_new_namespace_waits_for_its_default_account(server: LiveServer) -> None:
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "fresh"}})

    answer = server.request("POST", "/api/v1/namespaces/fresh/pods", pod("p"))

    assert (answer.status, answer.json["spec"]["serviceAccountName"]) == (201, "default")


def test_a_pod_of_an_unknown_account_is_refused(server: LiveServer) -> None:
    answer = sent(server, pod("p", serviceAccountName="none"))

    text = 'error looking up service account default/none: serviceaccount "none" not found'
    assert (answer.status, answer.json["message"]) == (403, f'pods "p" is forbidden: {text}')


def test_a_token_volume_that_exists_is_used(server: LiveServer) -> None:
    volume = {"name": "kube-api-access-mine", "emptyDir": {}}

    spec = sent(server, pod("p", volumes=[volume])).json["spec"]

    assert [each["name"] for each in spec["volumes"]] == ["kube-api-access-mine"]
    assert spec["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-mine"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"volumes": [from_volume("t")]}, 'volume with secret.secretName="t"'),
        ({"container": from_env("t")}, "container c with envVar E referencing"),
        ({"container": {"envFrom": [{"secretRef": {"name": "t"}}]}}, "container c with envFrom"),
        (
            {"initContainers": [{"name": "d", "image": "i", **from_env("t")}]},
            "init container d with envVar E",
        ),
        ({"imagePullSecrets": [{"name": "s"}]}, 'imagePullSecrets[0].name="s"'),
    ],
)
def test_an_account_that_enforces_it_allows_only_the_secrets_it_lists(
    server: LiveServer, spec: Json, text: str
) -> None:
    answer = sent(server, pod("p", serviceAccountName="limited", **spec))

    assert answer.status == 403
    assert f"forbidden: {text}" in answer.json["message"]
    assert "service account limited does not reference that" in answer.json["message"]


def test_secrets_that_the_account_lists_may_be_used_also_later(server: LiveServer) -> None:
    body = pod("e", serviceAccountName="limited", volumes=[from_volume("s")])
    assert server.request("POST", f"{CORE}/pods", body).status == 201

    def attach(secret: str) -> Answer:
        container = {"name": "d", "image": "i", **from_env(secret)}
        return server.request(
            "PATCH",
            f"{CORE}/pods/e/ephemeralcontainers",
            {"spec": {"ephemeralContainers": [container]}},
            content_type="application/strategic-merge-patch+json",
        )

    refused = attach("t")
    assert refused.json["message"].startswith("ephemeral container d with envVar E")
    assert attach("s").status == 200


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"serviceAccountName": "default"}, "service accounts"),
        ({"container": from_env("t")}, "secrets"),
        ({"imagePullSecrets": [{"name": "t"}]}, "secrets"),
        ({"volumes": [from_volume("t")]}, "secrets"),
        (
            {
                "volumes": [
                    {"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "t"}}}
                ]
            },
            "secrets",
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "t"}}]}}]},
            "secrets",
        ),
    ],
)
def test_a_mirror_pod_refers_to_nothing(server: LiveServer, spec: Json, text: str) -> None:
    answer = sent(server, pod("m", MIRROR, nodeName="n", **spec))

    assert answer.json["message"].endswith(f"a mirror pod may not reference {text}")


def test_a_mirror_pod_may_not_ask_for_a_token(server: LiveServer) -> None:
    token = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}

    answer = sent(server, pod("m", MIRROR, nodeName="n", volumes=[token]))

    assert answer.json["message"].endswith("may not use ServiceAccountToken volume projections")
    assert sent(server, pod("m", MIRROR, nodeName="n")).status == 201
