"""Discovery documents, and who may do what: RBAC, impersonation, reviews of access and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.recordings.scenarios import Scenario, a_version, with_spec

_SCHEMA = with_spec(a={"type": "string"}, n={"type": "integer"})
_SCHEMA["properties"]["status"] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "replicas": {"type": "integer"},
    },
}


def scenarios() -> Iterator[Scenario]:
    scenario = Scenario("discovery")
    names = {"singular": "foo", "shortNames": ["fo"], "categories": ["all"]}
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.replicas"}
    scenario.make_crd(
        scenario.crd(
            [
                a_version("v1", _SCHEMA, subresources={"status": {}, "scale": scale}),
                a_version("v2beta1", _SCHEMA, storage=False),
            ],
            names=names,
        )
    )
    own = f"/apis/{scenario.group}"
    groups = ("apps", "batch", "autoscaling", "policy", "networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "node.k8s.io", "scheduling.k8s.io",
              "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "resource.k8s.io")  # fmt: skip
    scenario.wait_for(own)
    for path in (
        "/api",
        "/api/v1",
        "/apis",
        own,
        f"{own}/v1",
        f"{own}/v2beta1",
        f"{own}/v9",
        "/apis/autoscaling/v2",
    ):
        scenario.get(path)
    for group in groups:
        scenario.get(f"/apis/{group}")
        scenario.get(f"/apis/{group}/v1")
    yield scenario
    access = Scenario("access")
    role = {
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    }
    access.post(access.path("roles", group="rbac.authorization.k8s.io"), role)
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    access.post(access.path("rolebindings", group="rbac.authorization.k8s.io"), binding, pause=1.0)
    maps, as_jane = access.path("configmaps", group=""), {"Impersonate-User": "jane"}
    access.post(maps, {"metadata": {"name": "m"}, "data": {"a": "b"}})
    for method, path, body in (("GET", f"{maps}/m", None), ("GET", maps, None), ("DELETE", f"{maps}/m", None), ("POST", maps, {"metadata": {"name": "n"}}), ("PUT", f"{maps}/m", {"metadata": {"name": "m"}}), ("GET", "/api/v1/configmaps", None), ("GET", access.path("secrets", group=""), None),
                               ("GET", "/api/v1/nodes", None), ("GET", "/apis/apps/v1/deployments", None), ("GET", f"{maps}?watch=1", None), ("DELETE", maps, None), ("GET", "/metrics", None), ("GET", "/version", None), ("GET", "/none", None), ("GET", access.path("foos"), None), ("PATCH", f"{maps}/m", {})):  # fmt: skip
        access.ask(
            method, path, body, f"jane {method}", headers=as_jane, only_code=path == "/version"
        )
    access.post(
        access.path("roles", group="rbac.authorization.k8s.io"),
        role,
        "jane makes a role",
        headers=as_jane,
    )
    spec: Any
    for verb, resource in (
        ("get", "configmaps"),
        ("delete", "configmaps"),
        ("get", "secrets"),
        ("list", "pods"),
        ("*", "*"),
    ):
        spec = {
            "resourceAttributes": {"namespace": access.name, "verb": verb, "resource": resource}
        }
        access.post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": spec},
            f"may {verb} {resource}",
            headers=as_jane,
        )
        access.post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": {**spec, "user": "jane"}},
            f"jane may {verb} {resource}",
        )
        access.post(
            access.path("localsubjectaccessreviews", group="authorization.k8s.io"),
            {"spec": {**spec, "user": "jane"}},
            "locally",
        )
    for spec in (
        {},
        {"resourceAttributes": {}, "nonResourceAttributes": {}},
        {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
        {"user": "x"},
        {"resourceAttributes": {"verb": "get", "fieldSelector": {"rawSelector": "a=b"}}},
    ):
        access.post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec}, "odd review"
        )
        access.post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": spec},
            "odd review of another",
        )
    access.post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {},
        "who am I",
        headers={"Impersonate-User": "jane", "Impersonate-Group": "devs"},
    )
    access.post(
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {"spec": {}},
        "rules of nowhere",
        headers=as_jane,
    )
    for headers in (
        {"Impersonate-Group": "g"},
        {"Impersonate-User": ""},
        {"Impersonate-User": "system:serviceaccount:access:default"},
        {"Impersonate-Uid": "u"},
        {"Impersonate-User": "j", "Impersonate-Extra-a": "b"},
    ):
        access.get(f"{maps}/m", "acting", headers=headers)
    accounts = access.path("serviceaccounts", "default/token", group="")
    for spec in (
        {"expirationSeconds": 1},
        {"expirationSeconds": 10**10},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}},
        {"boundObjectRef": {"kind": "X"}},
    ):
        access.post(accounts, {"spec": {"audiences": ["x"], **spec}}, "token")
    access.post(
        "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}, "token review"
    )
    access.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}}, "empty token review")
    yield access
