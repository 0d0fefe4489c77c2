"""Validation rules of PersistentVolumeClaims: at a create, and which changes a claim allows.

The claim strategy calls it, and the rules of StatefulSets for their claim templates. Rules of the
other storage kinds are in ``storage.py``.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    forbidden,
    invalid,
    key,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_subdomain
from instar.kube.builtin_rules.basics import (
    choice_errors,
    immutable_errors,
    texts_at,
)
from instar.kube.builtin_rules.go_internal_text import difference, internal
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.kube.builtin_rules.selectors import selector_errors

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CLAIM_FROZEN = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
VOLUME_MODES = ("Block", "Filesystem")
POSITIVE = "must be greater than zero"


def access_mode_errors(modes: list[str], path: str = "spec") -> list[FieldError]:
    where = f"{path}.accessModes"
    found: list[FieldError] = [
        not_supported(where, mode, _MODES) for mode in modes if mode not in _MODES
    ]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        found.append(forbidden(where, text))
    return found


def claim_errors(spec: Object, path: str = "spec") -> list[FieldError]:
    found: list[FieldError] = []
    if not spec.get("accessModes"):
        found.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        found += selector_errors(spec["selector"], f"{path}.selector")
    found += access_mode_errors(spec.get("accessModes") or [], path)
    requests = (spec.get("resources") or {}).get("requests") or {}
    where = key(f"{path}.resources", "storage")
    if "storage" not in requests:
        found.append(required(where))
    elif quantity_value(requests["storage"]) <= 0:
        found.append(invalid(where, requests["storage"], POSITIVE))
    name = spec.get("storageClassName")
    if name:
        found += texts_at(f"{path}.storageClassName", name, dns1123_subdomain(name))
    if spec.get("volumeMode") is not None:
        found += choice_errors(spec["volumeMode"], f"{path}.volumeMode", VOLUME_MODES)
    return found + _data_source_errors(spec, path)


def _data_source_errors(spec: Object, path: str) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: list[FieldError] = []
    for name, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is not None:
            missing = [member for member in ("name", "kind") if not value.get(member)]
            found += [required(f"{path}.{name}.{member}") for member in missing]
    if source is None or reference is None:
        return found
    names = ("kind", "name", "apiGroup")
    if any((source.get(name) or None) != (reference.get(name) or None) for name in names):
        found.append(invalid(path, {}, "must match dataSourceRef"))
    return found


def claim_change_errors(new: Object, old: Object) -> list[FieldError]:
    after, before = new["spec"], old["spec"]
    found: list[FieldError] = []
    was, becomes = dict(before), _without_allowed_changes(new, old)
    if not before.get("volumeName"):
        was["volumeName"] = after.get("volumeName", "")
    if _takes_class_of_annotation(new, old):
        becomes.pop("storageClassName", None)
    else:
        found += _annotation_errors(new, old)
        if _may_choose_class(new, old):
            becomes.pop("storageClassName", None)
    shown = [internal("PersistentVolumeClaimSpec", spec) for spec in (was, becomes)]
    if shown[0] != shown[1]:
        text = f"{_CLAIM_FROZEN}\n{difference(*shown)}"
        found.append(forbidden("spec", text))
    wanted, had = (_requested_storage(spec) for spec in (after, before))
    known = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    shrinks = quantity_value(wanted or "0") < quantity_value(had or "0")
    if shrinks and quantity_value(wanted or "0") <= quantity_value(known):
        text = "field can not be less than status.capacity"
        found.append(forbidden("spec.resources.requests.storage", text))
    found += immutable_errors(after.get("volumeMode"), before.get("volumeMode"), "volumeMode")
    return found + _attributes_class_errors(new, old)


def _without_allowed_changes(new: Object, old: Object) -> Object:
    """Return the new spec with the old values of what a bound claim may change."""
    spec, before = dict(new["spec"]), old["spec"]
    if (old.get("status") or {}).get("phase") != "Bound":
        return spec
    requests = (spec.get("resources") or {}).get("requests")
    if requests is not None:
        had = _requested_storage(before)
        spec["resources"] = {**spec["resources"], "requests": {**requests, "storage": had}}
    name = "volumeAttributesClassName"
    spec.pop(name, None)
    return {**spec, name: before[name]} if name in before else spec


def _takes_class_of_annotation(new: Object, old: Object) -> bool:
    """Return whether the class moves from the old annotation to its field."""
    annotated, kept = _class_annotation(old), _class_annotation(new)
    return (
        annotated is not None
        and old["spec"].get("storageClassName") is None
        and new["spec"].get("storageClassName") == annotated
        and kept in (None, annotated)
    )


def _may_choose_class(new: Object, old: Object) -> bool:
    """Return whether a claim without a class gets one: it waits for a default class."""
    chosen = new["spec"].get("storageClassName")
    return (
        chosen is not None
        and old["spec"].get("storageClassName") is None
        and _class_annotation(old) in (None, chosen)
    )


def _annotation_errors(new: Object, old: Object) -> list[FieldError]:
    where = f"metadata.annotations.{_CLASS_ANNOTATION}"
    return immutable_errors(_class_annotation(new) or "", _class_annotation(old) or "", where)


def _class_annotation(claim: Object) -> str | None:
    value = (claim["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    return None if value is None else str(value)


def _attributes_class_errors(new: Object, old: Object) -> list[FieldError]:
    """An attributes class that was applied may be replaced, but not taken away."""
    name, applied = "volumeAttributesClassName", "currentVolumeAttributesClassName"
    after, before = new["spec"].get(name), old["spec"].get(name)
    if after == before or after or (old.get("status") or {}).get(applied) is None:
        return []
    empty = "nil" if after is None else "empty string"
    text = f"update to {empty} is forbidden when status.{applied} is not nil"
    return [forbidden(f"spec.{name}", text)]


def _requested_storage(spec: Object) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage", ""))
