"""Role-based access, on by default: what a plain user may do, and how everything else is refused.

Texts as kube-apiserver 1.36.4 answered (reference, access.md).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.rest.rbac import RBAC, as_, binding, given, guarded, path_of, role, rule, user
from tests.rest.support import APPLY, MERGE, failed
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

__all__ = ["given", "guarded"]


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        (
            "GET",
            "/apis/ex.io/v1/namespaces/d/foos",
            'foos.ex.io is forbidden: User "carol" cannot list resource "foos" in API group '
            '"ex.io" in the namespace "d"',
        ),
        (
            "GET",
            "/api/v1/namespaces/default/configmaps/a",
            'configmaps "a" is forbidden: User "carol" cannot get resource "configmaps" in API '
            'group "" in the namespace "default"',
        ),
        (
            "GET",
            "/api/v1/nodes/n1",
            'nodes "n1" is forbidden: User "carol" cannot get resource "nodes" in API group "" at '
            "the cluster scope",
        ),
        (
            "GET",
            "/api/v1/configmaps",
            'configmaps is forbidden: User "carol" cannot list resource "configmaps" in API group '
            '"" at the cluster scope',
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/ns1/deployments/d/status",
            'deployments.apps "d" is forbidden: User "carol" cannot patch resource '
            '"deployments/status" in API group "apps" in the namespace "ns1"',
        ),
        ("POST", "/metrics", 'forbidden: User "carol" cannot post path "/metrics"'),
        (
            "OPTIONS",
            "/api/v1/namespaces/default/configmaps",
            'configmaps is forbidden: User "carol" cannot  resource "configmaps" in API group "" '
            'in the namespace "default"',
        ),
        (
            "GET",
            "/api/v1/namespaces/foo",
            'namespaces "foo" is forbidden: User "carol" cannot get resource "namespaces" in API '
            'group "" in the namespace "foo"',
        ),
        (
            "GET",
            "/apis/no.such/v1/things",
            'things.no.such is forbidden: User "carol" cannot list resource "things" in API group '
            '"no.such" at the cluster scope',
        ),
        (
            "DELETE",
            "/apis/ex.io/v1/namespaces/d/foos?fieldSelector=metadata.name%3Da",
            'foos.ex.io is forbidden: User "carol" cannot deletecollection resource "foos" in API '
            'group "ex.io" in the namespace "d"',
        ),
        (
            "GET",
            "/apis/ex.io/v1/namespaces/d/foos?fieldSelector=metadata.name%3Da,spec.x%3Dy",
            'foos.ex.io "a" is forbidden: User "carol" cannot list resource "foos" in API group '
            '"ex.io" in the namespace "d"',
        ),
        (
            "GET",
            "/apis/ex.io/v1/namespaces/d/foos?watch=1",
            'foos.ex.io is forbidden: User "carol" cannot watch resource "foos" in API group '
            '"ex.io" in the namespace "d"',
        ),
    ],
)
def test_a_refusal_names_user_verb_and_resource(
    guarded: LiveServer, method: str, path: str, message: str
) -> None:
    failed(as_(guarded, "carol", method, path, "rubbish"), 403, "Forbidden", message)


def test_names_in_a_refusal_are_quoted_and_escaped(guarded: LiveServer) -> None:
    answer = as_(guarded, "imp", "GET", "/metrics")
    assert answer.json["message"] == (
        'forbidden: User "a&lt;b&amp;c&gt;d\\"e" cannot get path "/metrics"'
    )
    assert answer.json["details"] == {}


def test_details_name_the_resource_and_omit_empty_fields(guarded: LiveServer) -> None:
    answer = as_(guarded, "carol", "GET", "/api/v1/nodes")
    assert answer.json["details"] == {"kind": "nodes"}
    answer = as_(guarded, "carol", "GET", "/apis/ex.io/v1/namespaces/d/foos/x/status")
    assert answer.json["details"] == {"name": "x", "group": "ex.io", "kind": "foos"}


def test_every_authenticated_user_may_read_discovery_and_review_itself(guarded: LiveServer) -> None:
    for path in ("/api", "/apis", "/apis/ex.io/v1", "/openapi/v3", "/version", "/healthz"):
        assert as_(guarded, "carol", "GET", path).status == 200, path
    assert as_(guarded, "carol", "GET", "/apis/no.such/v1").status == 404
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert as_(guarded, "carol", "POST", path, review).status == 201
    assert guarded.request("POST", path, review, token=None).status == 403


def test_a_role_binding_grants_access_to_its_namespace_only(
    guarded: LiveServer, given: Any
) -> None:
    given(
        role("read", rule("get list", "foos", "ex.io"), namespace="default"),
        binding("b", "Role/read", user("carol"), namespace="default"),
    )
    base = "/apis/ex.io/v1/namespaces/default/foos"
    assert as_(guarded, "carol", "GET", base).status == 200
    assert as_(guarded, "carol", "GET", f"{base}/none").status == 404
    assert as_(guarded, "carol", "GET", f"{base}/none/status").status == 403
    assert as_(guarded, "carol", "GET", f"{base}?watch=1").status == 403
    assert as_(guarded, "carol", "GET", "/apis/ex.io/v1/foos").status == 403
    assert as_(guarded, "carol", "GET", "/apis/ex.io/v1/namespaces/kube-system/foos").status == 403
    assert as_(guarded, "ed", "GET", base).status == 403


def test_deleting_a_binding_acts_at_once(guarded: LiveServer, given: Any) -> None:
    given(role("nodes", rule("list", "nodes")), binding("nodes", "ClusterRole/nodes", user("ed")))
    assert as_(guarded, "ed", "GET", "/api/v1/nodes").status == 200
    assert guarded.request("DELETE", f"{RBAC}/clusterrolebindings/nodes").status == 200
    assert as_(guarded, "ed", "GET", "/api/v1/nodes").status == 403


def test_a_role_with_names_allows_a_list_of_that_name(guarded: LiveServer, given: Any) -> None:
    named = rule("get list watch", "configmaps", resourceNames=["a"])
    given(role("one", named), binding("one", "ClusterRole/one", user("carol")))
    assert as_(guarded, "carol", "GET", "/api/v1/namespaces/default/configmaps/a").status == 404
    assert as_(guarded, "carol", "GET", "/api/v1/namespaces/default/configmaps/b").status == 403
    assert as_(guarded, "carol", "GET", "/api/v1/configmaps").status == 403
    for path in ("/api/v1/configmaps", "/api/v1/namespaces/default/configmaps"):
        listed = as_(guarded, "carol", "GET", f"{path}?fieldSelector=metadata.name%3Da")
        assert listed.status == 200, listed.text


def test_a_binding_of_a_missing_role_is_reported(guarded: LiveServer, given: Any) -> None:
    given(
        binding("lost", "ClusterRole/nosuch", user("carol")),
        binding("lost", "Role/nosuchrole", user("carol"), namespace="default"),
    )
    answer = as_(guarded, "carol", "GET", "/api/v1/namespaces/default/pods")
    assert answer.json["message"].endswith(
        'in the namespace "default": RBAC: [clusterrole.rbac.authorization.k8s.io "nosuch" not '
        'found, role.rbac.authorization.k8s.io "nosuchrole" not found]'
    )


def test_an_update_without_create_permission_creates_nothing(
    guarded: LiveServer, given: Any
) -> None:
    given(
        role("up", rule("get update patch", "clusterroles foos leases", "* ")),
        binding("up", "ClusterRole/up", user("carol")),
    )
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "x"},
    }
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x"
    failed(
        as_(guarded, "carol", "PUT", path, lease),
        403,
        "Forbidden",
        'leases.coordination.k8s.io "x" is forbidden: User "carol" cannot create resource '
        '"leases" in API group "coordination.k8s.io" in the namespace "default"',
    )
    foo = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "x"}}
    path = "/apis/ex.io/v1/namespaces/default/foos/x?fieldManager=m"
    assert as_(guarded, "carol", "PATCH", path, foo, content_type=APPLY).status == 403
    assert guarded.request("GET", path).status == 404


def test_admin_edit_and_view_gather_and_crd_authors_extend_them(
    guarded: LiveServer, given: Any
) -> None:
    def rules(name: str) -> Any:
        return guarded.request("GET", f"{RBAC}/clusterroles/{name}").json["rules"]

    viewed, edited, admined = rules("view"), rules("edit"), rules("admin")
    assert all(rule in edited for rule in viewed)
    assert all(rule in admined for rule in edited)
    assert not any("secrets" in rule["resources"] for rule in viewed)
    mine = rule("get list watch", "foos", "ex.io")
    label = {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
    given(role("foo-view", mine, metadata=label))

    def told(name: str, wanted: bool) -> bool:
        return (mine in rules(name)) is wanted

    for name in ("view", "edit", "admin"):
        eventually(partial(told, name, True))
    guarded.request("DELETE", f"{RBAC}/clusterroles/foo-view")
    for name in ("view", "edit", "admin"):
        eventually(partial(told, name, False))


def test_defaults_are_mended_at_the_next_start_and_additions_stay(tmp_path: Path) -> None:
    storage = f"sqlite:{tmp_path / 'db'}"
    with live_server(storage=storage, cert_dir=tmp_path / "pki") as server:
        found = server.request("GET", f"{RBAC}/clusterroles/cluster-admin").json
        assert found["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "rbac-defaults"}
        discovery = server.request("GET", f"{RBAC}/clusterroles/system:discovery").json
        own = {"verbs": ["get"], "nonResourceURLs": ["/mine"]}
        discovery["rules"] = [own]
        path = f"{RBAC}/clusterroles/system:discovery"
        assert server.request("PUT", path, discovery).status == 200
        viewer = f"{RBAC}/clusterrolebindings/system:public-info-viewer"
        left = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
        alone = {"metadata": {"annotations": left}, "subjects": None}
        assert server.request("PATCH", viewer, alone, content_type=MERGE).status == 200
        assert server.request("DELETE", f"{RBAC}/clusterroles/view").status == 200
        basic = binding("system:basic-user", "ClusterRole/view", user("x"))
        server.request("DELETE", f"{RBAC}/clusterrolebindings/system:basic-user")
        assert server.request("POST", path_of(basic), basic).status == 201
    with live_server(storage=storage, cert_dir=tmp_path / "pki") as server:
        rules = server.request("GET", f"{RBAC}/clusterroles/system:discovery").json["rules"]
        assert rules[0] == own
        assert {"verbs": ["get"], "nonResourceURLs": ["/apis/*"]} in rules
        assert "subjects" not in server.request("GET", viewer).json
        assert server.request("GET", f"{RBAC}/clusterroles/view").json["rules"]
        mended = server.request("GET", f"{RBAC}/clusterrolebindings/system:basic-user").json
        assert mended["roleRef"]["name"] == "system:basic-user"
