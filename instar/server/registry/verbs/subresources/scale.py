"""Projection between an object and its ``autoscaling/v1`` Scale.

``scaling.py`` and ``server/rest/scaling.py`` call it; pure functions on plain objects.
"""

from __future__ import annotations

from typing import Any

from instar.base.errors import BadRequest, Internal, Unclassified
from instar.base.json_values import Object
from instar.kube.api.crd import ScalePaths
from instar.kube.api.label_selector import selector_text
from instar.kube.schema.scale import WrongType, int_at, string_at

API_VERSION, KIND = "autoscaling/v1", "Scale"
_UNSET_REPLICAS = -2_147_483_648
"""The replicas of a Scale that sets none; storing it is refused."""


def to_scale(obj: Object, paths: ScalePaths) -> Object:
    """Return the Scale of an object. Raises ``Internal`` where upstream answers 500."""
    try:
        desired = int_at(obj, paths.spec_replicas)
        actual = int_at(obj, paths.status_replicas)
        selector = _selector(obj, paths)
    except WrongType as error:
        raise Internal(str(error)) from error
    if desired is None:
        raise Internal(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    status: Object = {"replicas": _int32(actual or 0)}
    if selector:
        status["selector"] = selector
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _int32(desired)} if desired else {},
        "status": status,
    }


def _selector(obj: Object, paths: ScalePaths) -> str:
    if not paths.label_selector:
        return ""
    if paths.selector_is == "text":
        return string_at(obj, paths.label_selector)
    found = (obj.get("spec") or {}).get("selector") or {}
    return selector_text({"matchLabels": found} if paths.selector_is == "labels" else found)


def as_scale(obj: Object, paths: ScalePaths) -> Object:
    """Return the Scale, also of an object without replicas."""
    return to_scale(obj, paths) if has_replicas(obj, paths) else unset_scale(obj)


def unset_scale(obj: Object) -> Object:
    """Return the Scale of an object without replicas, marked as upstream does."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _UNSET_REPLICAS},
        "status": {"replicas": 0},
    }


def has_replicas(obj: Object, paths: ScalePaths) -> bool:
    try:
        return int_at(obj, paths.spec_replicas) is not None
    except WrongType:
        return True


def set_replicas(obj: Object, scale: Object, paths: ScalePaths) -> None:
    """Write the Scale's replicas into the object, in place; missing ones count as 0."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas == _UNSET_REPLICAS:
        raise BadRequest(f'the spec replicas field "{paths.spec_replicas}" cannot be empty')
    value: Any = obj
    *parents, last = paths.spec_replicas.lstrip(".").split(".")
    at = ""
    for part in parents:
        value = value.setdefault(part, {})
        at += f".{part}"
        if not isinstance(value, dict):
            text = f"value cannot be set because {at} is not a map[string]interface {{}}"
            raise Unclassified(text)
    value[last] = replicas


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
