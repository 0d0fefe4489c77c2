"""Built-in plugins by upstream's names: on, off, on request."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.cli.serving import admission_flags
from instar.cli.shared.failure import CliFailure
from instar.server.registry.admission.plugin_names import HERE, chosen
from tests.admission.conftest import widget_crd
from tests.rest.support import Collection
from tests.support.server import Answer, LiveServer, live_server

PODS = "/api/v1/namespaces/default/pods"


def read(*words: str) -> frozenset[str]:
    parser = argparse.ArgumentParser()
    admission_flags.add_arguments(parser)
    return admission_flags.plugins(parser.parse_args(words))


def test_flags_have_kube_apiservers_words() -> None:
    found = read(
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        "--disable-admission-plugins=ResourceQuota, LimitRanger",
    )

    assert "OwnerReferencesPermissionEnforcement" in found
    assert not found & {"ResourceQuota", "LimitRanger"}
    assert "NamespaceLifecycle" in found


def test_only_some_may_be_wanted() -> None:
    assert read("--admission=NamespaceLifecycle,ValidatingAdmissionWebhook") == {
        "NamespaceLifecycle",
        "ValidatingAdmissionWebhook",
    }


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["--enable-admission-plugins=Nope"],
            'enable-admission-plugins plugin "Nope" is unknown',
        ),
        (
            [
                "--enable-admission-plugins=LimitRanger",
                "--disable-admission-plugins=LimitRanger",
            ],
            "overlapped",
        ),
    ],
)
def test_plugins_that_cannot_be_enabled_are_refused(words: list[str], text: str) -> None:
    with pytest.raises(CliFailure, match=text) as caught:
        read(*words)

    assert caught.value.code == 2


def pod(server: LiveServer, name: str, **spec: Any) -> Answer:
    containers = [{"name": "c", "image": "i"}]
    body = {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
    return server.request("POST", PODS, body)


def test_a_plugin_that_is_off_does_nothing() -> None:
    off = chosen([], ["DefaultTolerationSeconds", "Priority", "NamespaceLifecycle"], [])
    with live_server(admission_plugins=off) as server:
        made = pod(server, "p").json
        elsewhere = "/api/v1/namespaces/nowhere/configmaps"
        unplaced = server.request("POST", elsewhere, {"metadata": {"name": "c"}})

    assert "tolerations" not in made["spec"]
    assert "priority" not in made["spec"]
    assert unplaced.status == 201


def test_always_deny_refuses_every_change() -> None:
    with live_server(admission_plugins=HERE | {"AlwaysDeny"}) as server:
        path = "/api/v1/namespaces/default/configmaps"
        answer = server.request("POST", path, {"metadata": {"name": "c"}})

    assert answer.status == 403
    assert answer.json["message"] == (
        'configmaps "c" is forbidden: admission control is denying all modifications'
    )


def test_a_pod_gets_a_service_account_and_its_token_when_configured() -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    with live_server(admission_plugins=HERE | {"ServiceAccount"}) as server:
        account: Object = {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]}
        early = pod(server, "early")
        server.request("POST", accounts, account)
        made = pod(server, "p").json["spec"]
        without = pod(server, "q", automountServiceAccountToken=False).json["spec"]

    assert early.status == 403
    assert early.json["message"] == (
        'pods "early" is forbidden: error looking up service account default/default: '
        'serviceaccount "default" not found'
    )
    assert made["serviceAccountName"] == "default"
    assert made["imagePullSecrets"] == [{"name": "s"}]
    (volume,) = made["volumes"]
    (mount,) = made["containers"][0]["volumeMounts"]
    assert volume["name"] == mount["name"]
    assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    sources = volume["projected"]["sources"]
    assert sources[0]["serviceAccountToken"] == {"expirationSeconds": 3607, "path": "token"}
    assert "volumes" not in without


# Owners -------------------------------------------------------------------------------------------

ROLE: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "bob"},
    "rules": [
        {
            "apiGroups": ["ref.io"],
            "resources": ["widgets"],
            "verbs": ["get", "create", "update", "patch"],
        }
    ],
}
BINDING: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "bob"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bob"},
}


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    tokens: Path = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    tokens.write_text("bob-token,bob,bob-uid\n")
    plugins = HERE | {"OwnerReferencesPermissionEnforcement"}
    how = {"token_file": tokens, "authorization": "RBAC", "admission_plugins": plugins}
    with live_server(collect_garbage=False, **how) as server:
        server.create_crd(widget_crd())
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        for plural, obj in (("clusterroles", ROLE), ("clusterrolebindings", BINDING)):
            assert server.request("POST", f"{rbac}/{plural}", obj).status == 201
        yield Collection(server, "ref.io", "widgets", "Widget")


def owner(**changes: Any) -> Object:
    given = {"apiVersion": "ref.io/v1", "kind": "Widget", "name": "o", "uid": "1"}
    return {**given, **changes}


def as_bob(owned: Collection, name: str, owners: list[Object]) -> Answer:
    body = {"metadata": {"ownerReferences": owners}}
    kind = "application/merge-patch+json"
    return owned.request("PATCH", f"/{name}", body, content_type=kind, token="bob-token")


def test_changing_owners_needs_permission_to_delete_the_object(owned: Collection) -> None:
    owned.create("c1")
    refused = as_bob(owned, "c1", [owner()])
    by_admin = owned.patch("c1", {"metadata": {"ownerReferences": [owner()]}})

    assert refused.status == 403
    assert refused.json["message"].startswith(
        'widgets.ref.io "c1" is forbidden: cannot set an ownerRef on a resource you can\'t delete: '
    )
    assert by_admin.status == 200


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "refers to a resource you can't set finalizers on: "),
        (
            {"kind": "Nope"},
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for "
            'APIVersion ref.io/v1 Kind Nope: no matches for kind "Nope" in version "ref.io/v1"',
        ),
    ],
)
def test_block_owner_deletion_needs_permission_for_the_owners_finalizers(
    owned: Collection, changes: Object, text: str
) -> None:
    waiting = owner(blockOwnerDeletion=True, **changes)
    body = owned.obj("c2", metadata={"ownerReferences": [waiting]})
    refused = owned.request("POST", "", body, token="bob-token")

    assert refused.status == 403
    assert text in refused.json["message"]
    assert owned.request("POST", "?dryRun=All", body).status == 201
