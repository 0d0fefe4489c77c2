"""ObjectMeta decoding: drops unknown and empty fields and converts the rest, as Go's decoder does.

Called by ``schema/pipeline.py`` and the built-in kinds. A fast pass recognises metadata that is
already normal; only other metadata is decoded field by field (``types.py``). Rules about values
(names, labels …) are in ``rules.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from instar.kube.schema.metadata.rules import (
    NameRule,
    name_is_path_segment,
    name_is_subdomain,
    validate_metadata,
    validate_metadata_update,
)
from instar.kube.schema.metadata.types import FIELDS, MetaError, canonical_time, struct, wrong
from instar.kube.schema.validation.numbers import INT64_MAX, INT64_MIN

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

Check = Callable[[Any], bool]
_TEXTS = {str}


def coerce_metadata(
    metadata: Any, path: str = "metadata", within: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """Return normal metadata and the sorted paths of its unknown fields. Raises ``MetaError``.

    Metadata that is already normal is returned as the same dict, else a new one. ``within`` is the
    kind that Go decodes it as a part of.
    """
    if type(metadata) is dict and _is_clean(metadata):
        return metadata, []
    if metadata is None:
        return {}, []
    if type(metadata) is not dict:
        raise wrong(metadata, f"{within}.metadata" if within else "", "v1.ObjectMeta")
    unknown: list[str] = []
    stack = "metadata" if within else ""
    return struct(metadata, "ObjectMeta", stack, path, FIELDS, unknown), sorted(unknown)


def coerce_metadata_lenient(metadata: Any) -> dict[str, Any]:
    """Normalise stored metadata: malformed fields are dropped, generation 0 becomes 1."""
    clean = drop_malformed(metadata) if type(metadata) is dict else {}
    if not clean.get("generation"):
        clean["generation"] = 1
    return clean


def drop_malformed(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata without malformed fields; the same dict if there are none."""
    if _is_clean(metadata):
        return metadata
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
    return {*map(type, value.values())} == _TEXTS


def _clean_list(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(item) is str for item in value)


def _clean_generation(value: Any) -> bool:
    return type(value) is int and 0 < value <= INT64_MAX


@lru_cache(maxsize=1024)
def _is_canonical_time(text: str) -> bool:
    try:
        return canonical_time(text) == text
    except MetaError:
        return False


def _clean_time(value: Any) -> bool:
    # Longer texts are not canonical, and must not fill the cache.
    return type(value) is str and len(value) == 20 and _is_canonical_time(value)


def _clean_integer(value: Any) -> bool:
    return type(value) is int and INT64_MIN <= value <= INT64_MAX


def _clean_bool(value: Any) -> bool:
    return type(value) is bool


def _clean_entries(fields: dict[str, Check], always: frozenset[str]) -> Check:
    """Return a check for lists of structs without unknown or empty fields; those in ``always``
    may be empty."""

    def check(value: Any) -> bool:
        if type(value) is not list or not value:
            return False
        for entry in value:
            if type(entry) is not dict or not always <= entry.keys():
                return False
            for name, item in entry.items():
                clean = fields.get(name)
                if clean is None or not (clean(item) or (item == "" and name in always)):
                    return False
        return True

    return check


_OWNER_TEXTS = ("apiVersion", "kind", "name", "uid")
_CLEAN_OWNER: dict[str, Check] = {
    **dict.fromkeys(_OWNER_TEXTS, _clean_text),
    **dict.fromkeys(("controller", "blockOwnerDeletion"), _clean_bool),
}
_CLEAN_MANAGED: dict[str, Check] = {
    **dict.fromkeys(
        ("manager", "operation", "apiVersion", "fieldsType", "subresource"), _clean_text
    ),
    "time": _clean_time,
    "fieldsV1": lambda value: value is not None,
}
_CLEAN: dict[str, Check] = {
    **dict.fromkeys(
        ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _clean_text
    ),
    "generation": _clean_generation,
    "creationTimestamp": _clean_time,
    "deletionTimestamp": _clean_time,
    "deletionGracePeriodSeconds": _clean_integer,
    "labels": _clean_map,
    "annotations": _clean_map,
    "ownerReferences": _clean_entries(_CLEAN_OWNER, frozenset(_OWNER_TEXTS)),
    "finalizers": _clean_list,
    "managedFields": _clean_entries(_CLEAN_MANAGED, frozenset()),
}
