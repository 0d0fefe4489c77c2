"""Table cells of volumes, claims, storage classes and CSI kinds.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import UNSET, age_of, is_terminating, name_of, part

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def _phase(obj: Object) -> str:
    return "Terminating" if is_terminating(obj) else part(obj, "status").get("phase", "")


def _class(obj: Object) -> str:
    old = part(obj, "metadata", "annotations").get(_CLASS_ANNOTATION)
    return str(old or part(obj, "spec").get("storageClassName") or "")


def volume(obj: Object, now: datetime) -> list[Any]:
    """Return the cells of a PersistentVolume's row in a Table."""
    spec = part(obj, "spec")
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        part(spec, "capacity").get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        part(obj, "status").get("reason", ""),
        age_of(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def claim(obj: Object, now: datetime) -> list[Any]:
    """Return the cells of a PersistentVolumeClaim's row in a Table."""
    spec, status = part(obj, "spec"), part(obj, "status")
    bound = spec.get("volumeName", "")
    return [
        name_of(obj),
        _phase(obj),
        bound,
        part(status, "capacity").get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        age_of(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def _storage_class(obj: Object, now: datetime) -> list[Any]:
    annotations = part(obj, "metadata", "annotations")
    default = any(annotations.get(name) == "true" for name in _DEFAULT_ANNOTATIONS)
    return [
        f"{name_of(obj)} (default)" if default else name_of(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age_of(obj, now),
    ]


def _driver(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    audiences = [one.get("audience", "") for one in spec.get("tokenRequests") or ()]
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(audiences) or UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()),
        age_of(obj, now),
    ]


def _node(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(part(obj, "spec").get("drivers") or ()), age_of(obj, now)]


def _attachment(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("attacher", ""),
        part(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(part(obj, "status").get("attached")),
        age_of(obj, now),
    ]


def _attributes_class(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("driverName", ""), age_of(obj, now)]


CELLS: Mapping[str, Cells] = {
    "csidrivers": _driver,
    "csinodes": _node,
    "storageclasses": _storage_class,
    "volumeattachments": _attachment,
    "volumeattributesclasses": _attributes_class,
}
