"""Metadata made to fit ObjectMeta: known fields of the right types, nothing empty, nothing else.

Most metadata is already clean; one pass finds out and leaves it alone. Only the rest is decoded
field by field. Rules about *values* (names, labels …) are in ``metarules.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.schema.metarules import (
    NameRule,
    name_is_path_segment,
    name_is_subdomain,
    validate_metadata,
    validate_metadata_update,
)
from instar.schema.metatypes import FIELDS, MetaError, canonical_time, struct, wrong
from instar.schema.numbers import INT64_MAX

__all__ = [
    "MetaError",
    "NameRule",
    "coerce_metadata",
    "coerce_metadata_lenient",
    "name_is_path_segment",
    "name_is_subdomain",
    "validate_metadata",
    "validate_metadata_update",
]


def coerce_metadata(metadata: Any, path: str = "metadata") -> tuple[dict[str, Any], list[str]]:
    """The clean metadata and the sorted paths of its unknown fields; MetaError when undecodable.

    Clean metadata comes back as the same dict; otherwise it is a new one.
    """
    if type(metadata) is dict and _is_clean(metadata):
        return metadata, []
    if metadata is None:
        return {}, []
    if type(metadata) is not dict:
        raise wrong(metadata, "", "v1.ObjectMeta")
    unknown: list[str] = []
    return struct(metadata, "ObjectMeta", "", path, FIELDS, unknown), sorted(unknown)


def coerce_metadata_lenient(metadata: Any) -> dict[str, Any]:
    """For objects from storage: bad fields are dropped one by one, generation 0 becomes 1."""
    if type(metadata) is not dict:
        clean: dict[str, Any] = {}
    elif _is_clean(metadata):
        clean = metadata
    else:
        clean = drop_malformed(metadata)
    if not clean.get("generation"):
        clean["generation"] = 1
    return clean


def drop_malformed(metadata: dict[str, Any]) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    for name, value in metadata.items():
        try:
            clean |= struct({name: value}, "ObjectMeta", "", "", FIELDS, [])
        except MetaError:
            continue
    return clean


def _is_clean(metadata: dict[str, Any]) -> bool:
    for name, value in metadata.items():
        check = _CLEAN.get(name)
        if check is None or not check(value):
            return False
    return True


def _clean_text(value: Any) -> bool:
    return type(value) is str and value != ""


def _clean_map(value: Any) -> bool:
    if type(value) is not dict or not value:
        return False
    return all(type(item) is str for item in value.values())


def _clean_list(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(item) is str for item in value)


def _clean_generation(value: Any) -> bool:
    return type(value) is int and 0 < value <= INT64_MAX


def _clean_time(value: Any) -> bool:
    # The fixed width of the canonical form; anything else takes the slow road.
    if type(value) is not str or len(value) != 20 or value[19] != "Z":
        return False
    try:
        return canonical_time(value) == value
    except MetaError:
        return False


def _clean_structs(field: str) -> Callable[[Any], bool]:
    decode = FIELDS[field]

    def check(value: Any) -> bool:
        unknown: list[str] = []
        try:
            return bool(decode(value, "", "", unknown) == value and not unknown)
        except MetaError:
            return False

    return check


_CLEAN: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _clean_text
    ),
    "generation": _clean_generation,
    "creationTimestamp": _clean_time,
    "deletionTimestamp": _clean_time,
    "deletionGracePeriodSeconds": lambda value: type(value) is int and abs(value) <= INT64_MAX,
    "labels": _clean_map,
    "annotations": _clean_map,
    "ownerReferences": _clean_structs("ownerReferences"),
    "finalizers": _clean_list,
    "managedFields": _clean_structs("managedFields"),
}
