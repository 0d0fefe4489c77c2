"""A converter, and the same with one bug each, for the checks to find."""

from __future__ import annotations

import json
from typing import Any

from instar.sdk import Converter, move, scale
from tests.support.crds import crd, fields, version

GROUP = "example.com"
KEPT = "example.com/kept"


def _version(
    name: str, spec: dict[str, Any], *, storage: bool, required: str = ""
) -> dict[str, Any]:
    node = fields(**spec)
    schema = fields(spec=node)
    if required:
        node["required"], schema["required"] = [required], ["spec"]
    return version(name, schema, storage=storage)


_COMMON: dict[str, Any] = {
    "image": {"type": "string", "maxLength": 30},
    "replicas": {"type": "integer", "minimum": 0, "maximum": 10},
    "paused": {"type": "boolean"},
    "mode": {"type": "string", "enum": ["fast", "slow"]},
    "ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
        },
    },
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "target": {"x-kubernetes-int-or-string": True},
    "note": {"type": "string", "nullable": True},
}
_SECONDS = {"type": "integer", "minimum": 0, "maximum": 10**9}
_MILLIS = {"type": "integer", "minimum": 0, "maximum": 10**12}
CRD: dict[str, Any] = crd(
    _version("v1", {**_COMMON, "timeoutSeconds": _SECONDS}, storage=False),
    _version("v2", {**_COMMON, "timeoutMillis": _MILLIS}, storage=True),
    group=GROUP,
    plural="widgets",
    kind="Widget",
)

_TEXT = {"type": "string"}
REQUIRED_CRD: dict[str, Any] = {
    **CRD,
    "spec": {
        **CRD["spec"],
        "versions": [
            _version("v1", {"image": _TEXT}, storage=False, required="image"),
            _version("v2", {"pullSpec": _TEXT}, storage=True, required="pullSpec"),
        ],
    },
}
"""Every field is required, so only a part of an object can lack it."""

good = Converter("Widget", group=GROUP, hub="v2")
good.between("v1", "v2", rules=[scale("spec.timeoutSeconds", "spec.timeoutMillis", 1000)])

drops_a_field = Converter("Widget", group=GROUP, hub="v2")
drops_a_field.lossy("v2", "spec.timeoutMillis", "v1 has whole seconds")


@drops_a_field.convert("v1", "v2")
def _up(obj: dict[str, Any]) -> None:
    spec = obj.get("spec", {})
    if "timeoutSeconds" in spec:
        spec["timeoutMillis"] = spec.pop("timeoutSeconds") * 1000
    spec.pop("paused", None)


@drops_a_field.convert("v2", "v1")
def _down(obj: dict[str, Any]) -> None:
    spec = obj.get("spec", {})
    if "timeoutMillis" in spec:
        spec["timeoutSeconds"] = spec.pop("timeoutMillis") // 1000


stale_annotation = Converter("Widget", group=GROUP, hub="v2")


@stale_annotation.convert("v2", "v1")
def _keep_everything(obj: dict[str, Any]) -> None:
    spec = obj.get("spec", {})
    obj["metadata"].setdefault("annotations", {})[KEPT] = json.dumps(spec)
    if "timeoutMillis" in spec:
        spec["timeoutSeconds"] = spec.pop("timeoutMillis") // 1000


@stale_annotation.convert("v1", "v2")
def _restore_everything(obj: dict[str, Any]) -> None:
    spec = obj.get("spec", {})
    if "timeoutSeconds" in spec:
        spec["timeoutMillis"] = spec.pop("timeoutSeconds") * 1000
    kept = obj["metadata"].get("annotations", {}).pop(KEPT, None)
    if kept is not None:
        spec.update(json.loads(kept))


crashes_on_parts = Converter("Widget", group=GROUP, hub="v2")


@crashes_on_parts.convert("v1", "v2")
def _careless_up(obj: dict[str, Any]) -> None:
    obj["spec"]["pullSpec"] = obj["spec"].pop("image")


@crashes_on_parts.convert("v2", "v1")
def _careful_down(obj: dict[str, Any]) -> None:
    spec = obj.get("spec", {})
    if "pullSpec" in spec:
        spec["image"] = spec.pop("pullSpec")


unknown_field = Converter("Widget", group=GROUP, hub="v2")
unknown_field.between("v1", "v2", rules=[move("spec.timeoutSeconds", "spec.timeout")])
