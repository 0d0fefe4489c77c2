"""Requests to a server of this process, past its port: what its application answers."""

from __future__ import annotations

from typing import Any

import orjson

from instar.kube.access.attributes import ADMIN_GROUP, AUTHENTICATED, User
from instar.server.http.messages import Request
from instar.server.lifecycle.composition import ServerComponents

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMIN = User("kubernetes-admin", (ADMIN_GROUP, AUTHENTICATED))
_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(
    plural: str, kind: str, schema: dict[str, Any] = _SCHEMA, other: bool = False
) -> dict[str, Any]:
    """With v1, which is stored, and v2 where there is an ``other``."""
    shape = {"served": True, "schema": {"openAPIV3Schema": schema}}
    versions = [{"name": "v1", "storage": True, **shape}]
    if other:
        versions.append({"name": "v2", "storage": False, **shape})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions,
        },
    }


def named(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}}


async def asked(
    machinery: ServerComponents,
    method: str,
    path: str,
    body: Any = None,
    accept: str = "application/json",
    content: str = "application/json",
    **query: str,
) -> tuple[int, Any]:
    headers = {b"content-type": content.encode(), b"accept": accept.encode()}
    data = b"" if body is None else orjson.dumps(body)
    asking = {name: [value] for name, value in query.items()}
    response = await machinery.app(Request(method, path, asking, headers, data), _ADMIN)
    text = b"".join(response.chunks)
    return response.status, orjson.loads(text) if text.startswith(b"{") else text
