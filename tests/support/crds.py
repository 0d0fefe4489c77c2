"""The one maker of CRDs for tests: each names only what its rule is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object

PLAIN: Object = {"type": "object"}


def version(name: str = "v1", schema: Mapping[str, Any] | None = PLAIN, **fields: Any) -> Object:
    """Served, not the storage version; ``schema=None`` leaves the schema out."""
    made: Object = {"name": name, "served": True, "storage": False}
    if schema is not None:
        made["schema"] = {"openAPIV3Schema": dict(schema)}
    return {**made, **fields}


def crd(
    *versions: Object,
    group: str = "example.com",
    plural: str = "foos",
    kind: str = "Foo",
    names: Object | None = None,
    scope: str = "Namespaced",
    **spec: Any,
) -> Object:
    """A v1 CRD; the first version is the storage version unless one says otherwise."""
    listed = [dict(item) for item in versions or (version(),)]
    if not any(item["storage"] for item in listed):
        listed[0]["storage"] = True
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **(names or {})},
            "versions": listed,
            **spec,
        },
    }


def fields(**schemas: Object) -> Object:
    """The schema of an object with these fields, such as ``spec`` and ``status``."""
    return {"type": "object", "properties": schemas}


def loose_crd(group: str, **fields: Any) -> Object:
    """Its objects may say anything; ``fields`` are of its version."""
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return crd(version(schema=loose, **fields), group=group)
