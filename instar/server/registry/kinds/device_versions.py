"""Converts ResourceClaims, their templates and ResourceSlices between v1beta1 and later versions.

``builtin_resources.py`` makes it the converter of these kinds, ``devices.py`` checks objects in the
later form. In v1beta1 the fields of an exact request stand in the request itself, and those of a
device below ``basic``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from instar.base.json_values import Object, copy_json

OLD, NEW = "resource.k8s.io/v1beta1", "resource.k8s.io/v1"
_EXACT = (
    *("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations"),
    "capacity",
)
_BASIC, _EXACTLY = "basic", "exactly"


class DeviceConverter:
    """A ``VersionConverter``."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        return [converted(obj, api_version) for obj in objects]


def converted(obj: Object, api_version: str) -> Object:
    """Return the object at another version; the object itself if it has that version."""
    now = obj.get("apiVersion")
    if now == api_version:
        return obj
    copy: Object = {**copy_json(obj), "apiVersion": api_version}
    if OLD in (now, api_version):
        _reshape(copy, to_old=api_version == OLD)
    return copy


def _reshape(obj: Object, *, to_old: bool) -> None:
    spec = obj.get("spec") or {}
    if obj.get("kind") == "ResourceSlice":
        _each(spec, "devices", _old_device if to_old else _new_device)
        return
    for claim in _claim_specs(obj, spec):
        _each(claim.get("devices") or {}, "requests", _old_request if to_old else _new_request)


def _claim_specs(obj: Object, spec: Object) -> Iterator[Object]:
    if obj.get("kind") == "ResourceClaimTemplate":
        yield spec.get("spec") or {}
    else:
        yield spec


def _each(parent: Object, name: str, change: Callable[[Object], Object]) -> None:
    if parent.get(name):
        parent[name] = [change(item) for item in parent[name]]


def _new_request(request: Object) -> Object:
    exact = {name: request[name] for name in _EXACT if _is_set(request.get(name))}
    rest = {name: value for name, value in request.items() if name not in _EXACT}
    return {**rest, _EXACTLY: exact} if exact else rest


def _old_request(request: Object) -> Object:
    rest = {name: value for name, value in request.items() if name != _EXACTLY}
    return {**rest, **(request.get(_EXACTLY) or {})}


def _new_device(device: Object) -> Object:
    return {"name": device.get("name", ""), **(device.get(_BASIC) or {})}


def _old_device(device: Object) -> Object:
    basic = {name: value for name, value in device.items() if name != "name"}
    return {"name": device.get("name", ""), _BASIC: basic}


def _is_set(value: object) -> bool:
    """Go's zero values of the fields of a request."""
    return value is not None and value not in ("", 0, [], {})
