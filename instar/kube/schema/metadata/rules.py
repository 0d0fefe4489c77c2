"""Validation rules of ObjectMeta on create and update: names, labels, owners, finalizers.

Called by ``schema/pipeline.py``. The rules expect metadata that ``object_meta.py`` has decoded, so
every field has the right type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    go_quote,
    invalid,
    required,
    too_long,
)
from instar.kube.api.names import parse_group_version
from instar.kube.api.string_rules import (
    dns1123_label,
    dns1123_subdomain,
    is_usual_label,
    is_usual_pair,
    label_value,
    path_segment_name,
    path_segment_prefix,
    qualified_name,
)

NameRule = Callable[[str, bool], list[str]]
"""(name, whether it is only the prefix of a generated one) -> messages"""


class MetadataCheck(Enum):
    """One of upstream's two checks of metadata that a kind makes when an object is updated."""

    WHOLE = "whole"
    """All rules of a new object."""
    UPDATE = "update"
    """What an update may not change, labels, annotations and owners."""


ANNOTATIONS_MAX = 256 * 1024
MAX_GENERATED_BASE = 58
"""Characters of ``generateName`` that are kept before the five random ones."""
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_WELL_KNOWN_FINALIZERS = (_ORPHAN, _FOREGROUND, "kubernetes")
_MOST_OWNER_ERRORS = 10
_IMMUTABLE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_TEXTS = frozenset({"name", "namespace", "uid"})


def name_is_subdomain(name: str, prefix: bool) -> list[str]:
    return dns1123_subdomain(_mask_trailing_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    return path_segment_prefix(name) if prefix else path_segment_name(name)


def validate_metadata(
    metadata: Mapping[str, Any],
    *,
    namespaced: bool,
    name_rule: NameRule = name_is_subdomain,
    path: str = "metadata",
) -> list[FieldError]:
    """Return the errors of a create, after a name was generated."""
    found: list[FieldError] = []
    front = metadata.get("generateName", "")
    if front and (texts := name_rule(front, True)):
        _add(found, child(path, "generateName"), front, texts)
    name = metadata.get("name", "")
    if not name:
        found.append(required(child(path, "name"), "name or generateName is required"))
    elif texts := name_rule(name, False):
        _add(found, child(path, "name"), name, texts)
    namespace = metadata.get("namespace", "")
    if not namespaced or not is_usual_label(namespace):
        found.extend(_namespace_errors(namespace, namespaced, path))
    generation = metadata.get("generation", 0)
    if generation < 0:
        detail = "must be greater than or equal to 0"
        found.append(invalid(child(path, "generation"), generation, detail))
    found += _common_errors(metadata, path)
    return found


def validate_metadata_update(
    new: Mapping[str, Any],
    old: Mapping[str, Any],
    path: str = "metadata",
    *,
    well_formed: bool = False,
) -> list[FieldError]:
    """Return the errors of an update: changed immutable fields and, unless the metadata is known
    to be ``well_formed``, malformed values."""
    found: list[FieldError] = []
    if old.get("deletionTimestamp"):
        found.extend(_new_finalizer_errors(new, old, child(path, "finalizers")))
    if not new.get("resourceVersion"):
        where = child(path, "resourceVersion")
        found.append(invalid(where, "", "must be specified for an update"))
    generation = new.get("generation", 0)
    if generation < old.get("generation", 0):
        where = child(path, "generation")
        found.append(invalid(where, generation, "must not be decremented"))
    for name in _IMMUTABLE:
        if new.get(name) != old.get(name):
            shown = new.get(name, "" if name in _TEXTS else None)
            found.append(invalid(child(path, name), shown, "field is immutable"))
    if not well_formed:
        found.extend(_labels_and_owners_errors(new, path))
    return found


def finalizer_advice(new: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[str]:
    """Return upstream's warnings for added finalizers without a domain."""
    if not new.get("finalizers"):
        return []
    added = set(new["finalizers"])
    if old is not None:
        added -= set(old.get("finalizers") or ())
    return [_advice(name) for name in sorted(added) if not _is_qualified(name)]


def _is_qualified(finalizer: str) -> bool:
    return "/" in finalizer or finalizer in _WELL_KNOWN_FINALIZERS


def unqualified_errors(metadata: Mapping[str, Any], path: str = "metadata") -> list[FieldError]:
    """Return errors for finalizers of built-in kinds that are neither well known nor qualified
    by a domain."""
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{path}.finalizers[{position}]", name, text)
        for position, name in enumerate(metadata.get("finalizers") or ())
        if not _is_qualified(name)
    ]


def _advice(finalizer: str) -> str:
    how = "including a path (/) " if "." in finalizer else ""
    return (
        f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name {how}'
        "to avoid accidental conflicts with other finalizer writers"
    )


def _add(found: list[FieldError], path: str, value: str, texts: list[str]) -> None:
    found.extend([invalid(path, value, text) for text in texts])


def _mask_trailing_dash(name: str) -> str:
    """Allow a trailing dash in a prefix, because random characters follow it."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def _namespace_errors(namespace: str, namespaced: bool, path: str) -> list[FieldError]:
    where = child(path, "namespace")
    if not namespaced:
        return [forbidden(where, "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(where)]
    return [invalid(where, namespace, text) for text in dns1123_label(namespace)]


def _common_errors(metadata: Mapping[str, Any], path: str) -> list[FieldError]:
    found = _labels_and_owners_errors(metadata, path)
    if "finalizers" in metadata:
        found.extend(_finalizer_errors(metadata["finalizers"], child(path, "finalizers")))
    return found


def _labels_and_owners_errors(metadata: Mapping[str, Any], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if "labels" in metadata:
        _judge_labels(metadata["labels"], path, found)
    if "annotations" in metadata:
        _judge_annotations(metadata["annotations"], path, found)
    if "ownerReferences" in metadata:
        found.extend(_owner_errors(metadata["ownerReferences"], child(path, "ownerReferences")))
    return found


def _judge_labels(labels: Mapping[str, str], path: str, found: list[FieldError]) -> None:
    for name, value in labels.items():
        if not is_usual_pair(name, value):
            where = child(path, "labels")
            _add(found, where, name, qualified_name(name))
            _add(found, where, value, label_value(value))


def _judge_annotations(annotations: Mapping[str, str], path: str, found: list[FieldError]) -> None:
    size = 0
    for name, value in annotations.items():
        texts = qualified_name(name.lower())
        if texts:
            _add(found, child(path, "annotations"), name, texts)
        size += len(name) + len(value)
    if size * 4 > ANNOTATIONS_MAX and _byte_size(annotations) > ANNOTATIONS_MAX:
        found.append(too_long(child(path, "annotations"), ANNOTATIONS_MAX))


def _byte_size(annotations: Mapping[str, str]) -> int:
    return sum(
        len(name.encode("utf-8", "surrogatepass")) + len(value.encode("utf-8", "surrogatepass"))
        for name, value in annotations.items()
    )


def _owner_errors(owners: Sequence[Mapping[str, Any]], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    controller = ""
    for owner in owners:
        found.extend(_one_owner_errors(owner, path))
        if not owner.get("controller"):
            continue
        name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            detail = (
                "Only one reference can have Controller set to true. Found "
                f'"true" in references for {controller} and {name}'
            )
            found.append(invalid(path, [_owner_in_go_order(item) for item in owners], detail))
            if len(found) >= _MOST_OWNER_ERRORS:
                break  # each error shows all owners
        else:
            controller = name
    return found


def _one_owner_errors(owner: Mapping[str, Any], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    api_version = owner.get("apiVersion", "")
    version = _version_of(api_version)
    if not version:
        where = child(path, "apiVersion")
        found.append(invalid(where, api_version, "version must not be empty"))
    found.extend(
        invalid(child(path, name), "", "must not be empty")
        for name in ("kind", "name", "uid")
        if not owner.get(name)
    )
    if api_version == "v1" and owner.get("kind") == "Event":
        detail = "/v1, Kind=Event is disallowed from being an owner"
        found.append(invalid(path, _owner_in_go_order(owner), detail))
    return found


def _owner_in_go_order(owner: Mapping[str, Any]) -> dict[str, Any]:
    names = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {name: owner[name] for name in names if name in owner}


def _version_of(api_version: str) -> str:
    try:
        return parse_group_version(api_version).version
    except ValueError:
        return ""


def _finalizer_errors(finalizers: Sequence[str], path: str) -> list[FieldError]:
    found = [invalid(path, name, text) for name in finalizers for text in qualified_name(name)]
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        found.append(invalid(path, list(finalizers), detail))
    return found


def _new_finalizer_errors(
    new: Mapping[str, Any], old: Mapping[str, Any], path: str
) -> list[FieldError]:
    extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not extra:
        return []
    shown = ", ".join(go_quote(name) for name in extra)
    return [
        forbidden(
            path,
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{shown}}}",
        )
    ]
