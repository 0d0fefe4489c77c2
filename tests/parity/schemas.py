"""A resource with a place for everything that is ever judged, and its variations."""

from __future__ import annotations

from typing import Any

from tests.support import crds

TEXT = {"type": "string"}
EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["must"],
    "properties": {
        "must": {"type": "string", "default": "be"},
        "short": {"type": "string", "maxLength": 3},
        "form": {"type": "string", "pattern": "^[a-z]*$"},
        "one": {"type": "string", "enum": ["a", "b"]},
        "few": {"type": "array", "maxItems": 2, "items": TEXT},
        "count": {"type": "integer", "minimum": 0, "maximum": 20},
        "share": {"type": "number"},
        "maybe": {"type": "string", "nullable": True},
        "port": {"x-kubernetes-int-or-string": True},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT, "maxItems": 5},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": TEXT, "number": {"type": "integer", "default": 80}},
            },
        },
        "labels": {"type": "object", "additionalProperties": TEXT, "maxProperties": 2},
        "inner": {"type": "object", "required": ["x"], "properties": {"x": TEXT, "y": TEXT}},
        "em": EMBEDDED,
        "ems": {"type": "array", "items": EMBEDDED},
        "open": OPEN,
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.count) || self.count != 13", "message": "unlucky"},
        {"rule": "self.must != 'not'", "message": "must not"},
    ],
}
STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "enum": ["up", "down"]},
        "note": {"type": "string", "maxLength": 3},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT, "maxItems": 5},
        "em": EMBEDDED,
        "open": OPEN,
        "seen": {
            "type": "integer",
            "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "went back"}],
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.seen) || self.seen != 13", "message": "unlucky"}
    ],
}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
SCALE = {
    "specReplicasPath": ".spec.open.replicas",
    "statusReplicasPath": ".status.open.replicas",
    "labelSelectorPath": ".status.open.selector",
}


def crd(group: str, schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    stored = crds.version("v1", schema, **version)
    return crds.crd(stored, group=group, plural="things", kind="Thing")


def plain_crd(group: str) -> dict[str, Any]:
    """The status is a member like any other."""
    return crd(group, SCHEMA, subresources={"scale": SCALE})


def full_crd(group: str) -> dict[str, Any]:
    """The status has an endpoint of its own."""
    return crd(group, SCHEMA, subresources={"status": {}, "scale": SCALE})
