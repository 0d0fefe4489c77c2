"""Roles, bindings and plain users for the tests of access: a server with three of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.rest.support import bar_crd, foo_crd
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
