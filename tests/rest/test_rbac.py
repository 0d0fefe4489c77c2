"""Role-based access, on by default: what a plain user may do, and how everything else is refused.

Texts as kube-apiserver 1.36.4 answered (reference, access.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.plain import Object
from tests.rest.support import APPLY, MERGE, bar_crd, failed, foo_crd
from tests.support.server import Answer, LiveServer, live_server

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API = "rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
USERS = """\
carol-token,carol,carol-uid,"devs"
ed-token,ed,ed-uid
imp-token,a<b&c>d"e,imp-uid
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    file = tmp_path_factory.mktemp("users") / "tokens.csv"
    file.write_text(USERS)
    with live_server(token_file=file) as server:
        server.create_crd(foo_crd("ex.io"))
        server.create_crd(bar_crd("ex.io"))
        yield server


def as_(
    server: LiveServer, user: str, method: str, path: str, body: Any = None, **more: Any
) -> Answer:
    return server.request(method, path, body, token=f"{user}-token", **more)


def role(name: str, *rules: Object, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= more.pop("metadata", {})
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "rules": list(rules), **more}


def rule(verbs: str, resources: str, groups: str = "", **more: Any) -> Object:
    return {
        "verbs": verbs.split(),
        "apiGroups": groups.split() or [""],
        "resources": resources.split(),
        **more,
    }


def binding(name: str, to: str, *subjects: Object, namespace: str = "") -> Object:
    kind, _, called = to.partition("/")
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": API,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "subjects": list(subjects),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": called},
    }


def user(name: str) -> Object:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def path_of(obj: Object) -> str:
    namespace = obj["metadata"].get("namespace")
    plural = obj["kind"].lower() + "s"
    return f"{RBAC}/namespaces/{namespace}/{plural}" if namespace else f"{RBAC}/{plural}"


@pytest.fixture
def given(guarded: LiveServer) -> Iterator[Any]:
    made: list[str] = []

    def make(*objects: Object) -> None:
        for obj in objects:
            answer = guarded.request("POST", path_of(obj), obj)
            assert answer.status == 201, answer.text
            made.append(f"{path_of(obj)}/{obj['metadata']['name']}")

    yield make
    for path in made:
        guarded.request("DELETE", path)


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
def test_a_refusal_says_who_what_and_where(
    guarded: LiveServer, method: str, path: str, message: str
) -> None:
    failed(as_(guarded, "carol", method, path, "rubbish"), 403, "Forbidden", message)


def test_names_in_a_refusal_are_quoted_and_escaped(guarded: LiveServer) -> None:
    answer = as_(guarded, "imp", "GET", "/metrics")
    assert answer.json["message"] == (
        'forbidden: User "a&lt;b&amp;c&gt;d\\"e" cannot get path "/metrics"'
    )
    assert answer.json["details"] == {}


def test_details_name_the_resource_and_leave_out_what_is_empty(guarded: LiveServer) -> None:
    answer = as_(guarded, "carol", "GET", "/api/v1/nodes")
    assert answer.json["details"] == {"kind": "nodes"}
    answer = as_(guarded, "carol", "GET", "/apis/ex.io/v1/namespaces/d/foos/x/status")
    assert answer.json["details"] == {"name": "x", "group": "ex.io", "kind": "foos"}


def test_discovery_and_questions_about_oneself_are_everybodys(guarded: LiveServer) -> None:
    for path in ("/api", "/apis", "/apis/ex.io/v1", "/openapi/v3", "/version", "/healthz"):
        assert as_(guarded, "carol", "GET", path).status == 200, path
    assert as_(guarded, "carol", "GET", "/apis/no.such/v1").status == 404
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert as_(guarded, "carol", "POST", path, review).status == 201
    assert guarded.request("POST", path, review, token=None).status == 403


def test_a_role_binding_opens_its_namespace_and_nothing_else(
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


def test_taking_a_binding_away_acts_at_once(guarded: LiveServer, given: Any) -> None:
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


def test_a_binding_of_a_missing_role_is_told(guarded: LiveServer, given: Any) -> None:
    given(
        binding("lost", "ClusterRole/nosuch", user("carol")),
        binding("lost", "Role/nosuchrole", user("carol"), namespace="default"),
    )
    answer = as_(guarded, "carol", "GET", "/api/v1/namespaces/default/pods")
    assert answer.json["message"].endswith(
        'in the namespace "default": RBAC: [clusterrole.rbac.authorization.k8s.io "nosuch" not '
        'found, role.rbac.authorization.k8s.io "nosuchrole" not found]'
    )


def test_who_may_update_but_not_create_makes_nothing_new(guarded: LiveServer, given: Any) -> None:
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


# --- granting ------------------------------------------------------------------------------------


@pytest.fixture
def ed_manages_roles(given: Any) -> None:
    given(
        role("rolemgr", rule("*", "roles rolebindings clusterroles clusterrolebindings", GROUP)),
        role("cm", rule("get", "configmaps")),
        binding("rolemgr", "ClusterRole/rolemgr", user("ed")),
        binding("cm", "ClusterRole/cm", user("ed")),
    )
    # "*" holds escalate and bind, too: tests that need a manager without them use carol.
    given(
        role(
            "careful",
            rule(
                "create get update patch delete",
                "roles rolebindings clusterroles clusterrolebindings",
                GROUP,
            ),
            rule("get", "configmaps"),
        ),
        binding("careful", "ClusterRole/careful", user("carol")),
    )


@pytest.mark.usefixtures("ed_manages_roles")
def test_nobody_grants_what_they_do_not_hold(guarded: LiveServer) -> None:
    wanted = role(
        "r1",
        rule("get list watch", "configmaps"),
        rule("get", "foos", "ex.io", resourceNames=["a"]),
        namespace="default",
    )
    failed(
        as_(guarded, "carol", "POST", path_of(wanted), wanted),
        403,
        "Forbidden",
        'roles.rbac.authorization.k8s.io "r1" is forbidden: user "carol" '
        '(groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not '
        "currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "watch"]}\n'
        '{APIGroups:["ex.io"], Resources:["foos"], ResourceNames:["a"], Verbs:["get"]}',
    )
    held = role("r2", rule("get", "configmaps"), namespace="default")
    assert as_(guarded, "carol", "POST", path_of(held), held).status == 201
    change = {"rules": [rule("delete", "configmaps")]}
    patched = as_(guarded, "carol", "PATCH", f"{path_of(held)}/r2", change, content_type=MERGE)
    assert patched.status == 403
    labelled = as_(
        guarded,
        "carol",
        "PATCH",
        f"{path_of(held)}/r2",
        {"metadata": {"labels": {"a": "b"}}},
        content_type=MERGE,
    )
    assert labelled.status == 200
    guarded.request("DELETE", f"{path_of(held)}/r2")


@pytest.mark.usefixtures("ed_manages_roles")
def test_who_may_escalate_and_bind_may_grant_anything(guarded: LiveServer) -> None:
    everything = role("all", rule("*", "*", "*"))
    assert as_(guarded, "ed", "POST", path_of(everything), everything).status == 201
    bound = binding("all", "ClusterRole/all", user("ed"))
    assert as_(guarded, "ed", "POST", path_of(bound), bound).status == 201
    for obj in (bound, everything):
        guarded.request("DELETE", f"{path_of(obj)}/all")


@pytest.mark.usefixtures("ed_manages_roles")
def test_a_binding_grants_what_its_role_grants(guarded: LiveServer) -> None:
    wanted = binding("mine", "ClusterRole/cluster-admin", user("carol"))
    answer = as_(guarded, "carol", "POST", path_of(wanted), wanted)
    assert answer.json["message"] == (
        'clusterrolebindings.rbac.authorization.k8s.io "mine" is forbidden: user "carol" '
        '(groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not '
        "currently held:\n"
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}'
    )
    lost = binding("mine", "ClusterRole/nosuch", user("x"), namespace="default")
    failed(
        as_(guarded, "carol", "POST", path_of(lost), lost),
        404,
        "NotFound",
        'rolebindings.rbac.authorization.k8s.io "nosuch" not found',
    )
    strange = binding("mine", "Foo/x", user("x"), namespace="default")
    answer = as_(guarded, "carol", "POST", path_of(strange), strange)
    assert (answer.status, answer.json["message"]) == (
        500,
        'unsupported role reference kind: "Foo"',
    )
    held = binding("mine", "ClusterRole/cm", user("x"), namespace="default")
    assert as_(guarded, "carol", "POST", path_of(held), held).status == 201
    guarded.request("DELETE", f"{path_of(held)}/mine")


@pytest.mark.usefixtures("ed_manages_roles")
def test_gathering_rules_needs_all_of_them(guarded: LiveServer) -> None:
    selectors = [{"matchLabels": {"a": "b"}}]
    wanted = role("agg1", aggregationRule={"clusterRoleSelectors": selectors})
    failed(
        as_(guarded, "carol", "POST", path_of(wanted), wanted),
        403,
        "Forbidden",
        'clusterroles.rbac.authorization.k8s.io "agg1" is forbidden: must have cluster-admin '
        "privileges to use the aggregationRule",
    )


@pytest.mark.usefixtures("ed_manages_roles")
def test_a_role_too_large_to_compare_is_refused_and_nobody_waits(guarded: LiveServer) -> None:
    many = [f"x{n}" for n in range(2000)]
    wanted = role("big", {"verbs": many, "apiGroups": many, "resources": many})
    answer = as_(guarded, "carol", "POST", path_of(wanted), wanted)
    assert answer.status == 403
    assert "more at once than can be compared" in answer.json["message"]


def test_the_role_of_a_binding_cannot_change(guarded: LiveServer, given: Any) -> None:
    given(binding("fixed", "ClusterRole/view", user("x"), namespace="default"))
    changed = binding("fixed", "ClusterRole/edit", user("x"), namespace="default")
    answer = guarded.request("PUT", f"{path_of(changed)}/fixed", changed)
    assert answer.status == 422
    assert answer.json["details"]["causes"][0]["message"] == (
        'Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole",'
        '"Name":"edit"}: cannot change roleRef'
    )


# --- what is there from the start ----------------------------------------------------------------


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
    for name in ("view", "edit", "admin"):
        eventually(lambda name=name: mine in rules(name))
    guarded.request("DELETE", f"{RBAC}/clusterroles/foo-view")
    for name in ("view", "edit", "admin"):
        eventually(lambda name=name: mine not in rules(name))


def eventually(holds: Any) -> None:
    for _ in range(200):
        if holds():
            return
    raise AssertionError("it never came true")


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
