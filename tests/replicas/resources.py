"""The CRD the tests of replicas write objects of."""

from __future__ import annotations

from typing import Any

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(group: str, plural: str = "notes", kind: str = "Note", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [version("v1", storage=True)],
            **spec,
        },
    }


def version(name: str, *, storage: bool = False, **properties: Any) -> dict[str, Any]:
    fields = {
        "last": {"type": "string"},
        "count": {"type": "integer"},
        "tokens": {"type": "array", "items": {"type": "string"}},
        **properties,
    }
    spec = {"type": "object", "properties": fields}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": storage, "schema": schema}


def path(group: str, name: str = "", *, plural: str = "notes", namespace: str = "default") -> str:
    return f"/apis/{group}/v1/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


def note(group: str, name: str, kind: str = "Note", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
