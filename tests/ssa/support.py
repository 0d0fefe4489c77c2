"""One resource in three guises: a single version, two with strategy None, two behind a webhook."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from instar.base.json_values import Object
from tests.support import crds
from tests.support.server import Answer, LiveServer

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"

SPEC: Object = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "default": 1},
        "image": {"type": "string"},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "args": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"},
                },
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "frozen": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True},
        "inner": {
            "type": "object",
            "nullable": True,
            "required": ["value"],
            "properties": {"value": {"type": "string"}},
        },
    },
}
STATUS = {
    "type": "object",
    "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}},
}


def renamed_spec() -> Object:
    """The same with ``image`` called ``picture``, as the other version behind a webhook."""
    properties = dict(SPEC["properties"])
    properties["picture"] = properties.pop("image")
    return {**SPEC, "properties": properties}


SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def crd(group: str, versions: dict[str, Object], conversion: Object | None = None) -> Object:
    """The first version is the storage version."""
    return crds.crd(
        *(
            crds.version(
                name,
                crds.fields(spec=spec, status=STATUS),
                subresources={"status": {}, "scale": SCALE},
            )
            for name, spec in versions.items()
        ),
        group=group,
        plural="things",
        kind="Thing",
        conversion=conversion or {"strategy": "None"},
    )


@dataclass(frozen=True)
class Things:
    """The things of one group on one server, spoken to at any version."""

    server: LiveServer
    group: str

    def path(self, name: str, version: str = "v1", sub: str = "") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/default/things/{name}"
        return f"{base}/{sub}" if sub else base

    def apply(
        self,
        name: str,
        spec: Any,
        *,
        manager: str = "alice",
        version: str = "v1",
        force: bool = False,
        sub: str = "",
        metadata: Object | None = None,
        **members: Any,
    ) -> Answer:
        body: Object = {
            "apiVersion": f"{self.group}/{version}",
            "kind": "Thing",
            "metadata": {"name": name, **(metadata or {})},
            **members,
        }
        if spec is not None:
            body["spec"] = spec
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        return self.server.request(
            "PATCH", self.path(name, version, sub) + query, body, content_type=APPLY
        )

    def merge(
        self, name: str, patch: Any, *, manager: str = "bob", version: str = "v1", sub: str = ""
    ) -> Answer:
        path = self.path(name, version, sub) + f"?fieldManager={manager}"
        return self.server.request("PATCH", path, patch, content_type=MERGE)

    def get(self, name: str, version: str = "v1") -> Object:
        answer = self.server.request("GET", self.path(name, version))
        assert answer.status == 200, answer.text
        found: Object = answer.json
        return found

    def owners(self, name: str) -> dict[tuple[str, str, str, str], Any]:
        """(manager, operation, version, subresource) → fieldsV1."""
        entries = self.get(name)["metadata"].get("managedFields", [])
        return {
            (
                e["manager"],
                e["operation"],
                e["apiVersion"].rpartition("/")[2],
                e.get("subresource", ""),
            ): e["fieldsV1"]
            for e in entries
        }


def rename_image(obj: Object, api_version: str) -> Object:
    """The webhook's converter: ``image`` in v1, ``picture`` in v2; copes with partial objects."""
    out: Object = json.loads(json.dumps(obj))
    out["apiVersion"] = api_version
    old, new = ("image", "picture") if api_version.endswith("/v2") else ("picture", "image")
    spec = out.get("spec")
    if isinstance(spec, dict) and old in spec:
        spec[new] = spec.pop(old)
    return out
