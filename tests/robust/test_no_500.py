"""Objects of the wrong shape are refused, never a failure of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.robust.conftest import CRDS, GROUP, THINGS, thing
from tests.robust.victim import Victim
from tests.support import crds

MIGRATIONS = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"


def built_in(kind: str, api_version: str = "v1", **members: Any) -> dict[str, Any]:
    name = {"metadata": {"name": "wrong-shape"}}
    return {"apiVersion": api_version, "kind": kind, **name, **members}


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "a namespace's spec": ("/api/v1/namespaces", built_in("Namespace", spec="x")),
    "its finalizers": ("/api/v1/namespaces", built_in("Namespace", spec={"finalizers": 5})),
    "a secret's data": ("/api/v1/namespaces/default/secrets", built_in("Secret", data="x")),
    "a service's ports": (
        "/api/v1/namespaces/default/services", built_in("Service", spec={"ports": 1.5})),
}  # fmt: skip


@pytest.mark.parametrize("spec", ["x", {"resource": "x"}])
def test_a_migration_of_the_wrong_shape(victim: Victim, spec: Any) -> None:
    kind, version = "StorageVersionMigration", "storagemigration.k8s.io/v1beta1"
    answer = victim.request("POST", MIGRATIONS, built_in(kind, version, spec=spec))
    assert 400 <= answer.status < 500, answer.text


@pytest.mark.parametrize("name", WRONG)
def test_built_in_kinds_of_the_wrong_shape(victim: Victim, name: str) -> None:
    path, body = WRONG[name]
    with victim.watched():
        answer = victim.request("POST", path, body)
    assert 400 <= answer.status < 500, answer.text


def test_apply_with_a_strange_version(victim: Victim) -> None:
    body = json.dumps({**thing("strange"), "apiVersion": "a/b/c"})
    with victim.watched():
        answer = victim.request(
            "PATCH",
            f"{THINGS}/strange?fieldManager=m",
            body,
            content_type="application/apply-patch+yaml",
        )
    assert 400 <= answer.status < 500, answer.text


def test_scale_where_spec_is_a_text(victim: Victim) -> None:
    group = f"scaled.{GROUP}"
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = crds.crd(
        crds.version("v1", open_schema, subresources={"scale": scale}),
        group=group,
        plural="scaleds",
        kind="Scaled",
    )
    assert victim.request("POST", CRDS, crd).status == 201
    path = f"/apis/{group}/v1/namespaces/default/scaleds"
    body = {**built_in("Scaled", f"{group}/v1", spec="x"), "metadata": {"name": "a"}}
    victim.request("POST", path, body)
    wanted = built_in("Scale", "autoscaling/v1", spec={"replicas": 1})
    with victim.watched():
        for method, sent, media in (
            ("GET", None, "application/json"),
            ("PUT", {**wanted, "metadata": {"name": "a"}}, "application/json"),
            ("PATCH", {"spec": {"replicas": 2}}, "application/merge-patch+json"),
        ):
            answer = victim.request(method, f"{path}/a/scale", sent, content_type=media)
            assert answer.status < 500 or "Traceback" not in answer.text


@pytest.mark.parametrize("word", ["y", "n", "on", "12", "1e3", "~"])
def test_a_name_that_yaml_does_not_read_as_text(victim: Victim, word: str) -> None:
    body = f"apiVersion: {GROUP}/v1\nkind: Thing\nmetadata:\n  name: {word}\n"
    answer = victim.request("POST", THINGS, body, content_type="application/yaml")
    assert answer.status in (400, 422), answer.text


@pytest.mark.parametrize(
    "text", ["{<<: 1}", "a: !!bool foo", 'a: !!int ""', 'a: !!float ""', ".inf"]
)
def test_yaml_that_cannot_be_read(victim: Victim, text: str) -> None:
    with victim.watched():
        answer = victim.request("POST", THINGS, text, content_type="application/yaml")
    assert answer.status == 400, answer.text


def test_access_reviews_of_other_users_are_answered_and_tokens_need_an_account(
    victim: Victim,
) -> None:
    reviews = "/apis/authorization.k8s.io/v1"
    wanted = {"verb": "get", "resource": "pods", "namespace": "default"}
    asked = {"user": "x", "resourceAttributes": wanted}

    whole = victim.request("POST", f"{reviews}/subjectaccessreviews", {"spec": asked})
    local = victim.request(
        "POST", f"{reviews}/namespaces/default/localsubjectaccessreviews", {"spec": asked}
    )
    token = victim.request("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", {})

    assert (whole.status, whole.json["status"]["allowed"]) == (201, False)
    assert (local.status, local.json["status"]["allowed"]) == (201, False)
    assert (token.status, token.json["message"]) == (404, 'serviceaccounts "a" not found')
