"""The CRD the tests of replicas write objects of."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from tests.support import crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(group: str, plural: str = "notes", kind: str = "Note", **spec: Any) -> Object:
    return crds.crd(version("v1"), group=group, plural=plural, kind=kind, **spec)


def version(name: str, *, storage: bool = False, **properties: Any) -> Object:
    spec = crds.fields(
        last={"type": "string"},
        count={"type": "integer"},
        tokens={"type": "array", "items": {"type": "string"}},
        **properties,
    )
    return crds.version(name, crds.fields(spec=spec), storage=storage)


def path(group: str, name: str = "", *, plural: str = "notes", namespace: str = "default") -> str:
    return f"/apis/{group}/v1/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


def note(group: str, name: str, kind: str = "Note", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
