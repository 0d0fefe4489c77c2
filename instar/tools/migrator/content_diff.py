"""Whether two readings of an object say the same, and where they do not. Pure.

Who owns which field is content too, but has rules of its own: ``ownership.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import orjson

from instar.base.json_values import ABSENT, Object, differing

_BOOKKEEPING = ("resourceVersion", "managedFields")
_OWN_PARTS = ("labels", "annotations", "finalizers", "ownerReferences")
_SHOWN = 3
_VALUE_LENGTH = 60


def digest(obj: Object) -> str:
    """A short hash of each part a client cares about, in one text: equal when nothing differs."""
    parts = {name: value for name, value in obj.items() if name != "metadata"}
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    for name in _OWN_PARTS:
        if name in metadata:
            parts[f"metadata.{name}"] = metadata.pop(name)
    parts["metadata"] = metadata
    return ";".join(f"{name}:{_hash(parts[name])}" for name in sorted(parts))


def changed_parts(before: str, after: str) -> list[str]:
    """Which parts two digests disagree about."""
    old, new = (dict(_split(text)) for text in (before, after))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def changes(before: Object, after: Object) -> list[str]:
    """The first few differences of two readings, as ``spec.size: 3 -> 7``."""
    found = []
    for path, old, new in differing(_content(before), _content(after)):
        found.append(f"{path}: {_shown(old)} -> {_shown(new)}")
        if len(found) > _SHOWN:
            return [*found[:_SHOWN], "and more"]
    return found


def _split(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(";"):
        name, _, value = part.rpartition(":")
        yield name, value


def _hash(value: Any) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def _content(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    return {**obj, "metadata": metadata}


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    text = orjson.dumps(value).decode()
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 1]}…"
