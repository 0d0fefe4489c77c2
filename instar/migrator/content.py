"""Whether two readings of an object say the same. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import orjson

from instar.plain import Object

_BOOKKEEPING = ("resourceVersion", "managedFields")


def digest(obj: Object) -> str:
    """A short hash of everything a client cares about."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    text = orjson.dumps({**obj, "metadata": metadata}, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def cleaned_managed_fields(obj: Object, group: str, served: Collection[str]) -> list[Object] | None:
    """managedFields without entries of versions that are gone; None when there is none of them.

    An empty list would make the next apply believe nobody ever owned anything and take over all
    fields under one stand-in owner, so the last entry leaves a minimal one behind.
    """
    entries: list[Object] = obj["metadata"].get("managedFields") or []
    kept = [entry for entry in entries if not _is_gone(entry, group, served)]
    if len(kept) == len(entries):
        return None
    return kept or [_seed(entries[-1], obj["apiVersion"])]


def _is_gone(entry: Object, group: str, served: Collection[str]) -> bool:
    entry_group, _, version = str(entry.get("apiVersion", "")).rpartition("/")
    return entry_group == group and version not in served


def _seed(last: Object, api_version: str) -> Object:
    return {
        **last,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:name": {}}},
    }
