"""Compares two readings of one object: digests, changed paths, texts for reports. Pure.

Called by the lister (digests), by ``rewrite_checks/`` before a write and by the checks after it.
Field ownership is compared by ``ownership.py``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from instar.base.json_values import ABSENT, Object, differing
from instar.tools.redacting import SHOWN as REDACTED
from instar.tools.redacting import is_secret, last_name

_BOOKKEEPING = ("resourceVersion", "managedFields", "generation", "selfLink")
"""The server writes these by itself; they change with every write."""
_METADATA_PARTS = ("labels", "annotations", "finalizers", "ownerReferences")
_MAX_SHOWN_PATHS = 3
"""After this number of paths a text ends with "and more"."""
_VALUE_LENGTH = 60
_POSITION = re.compile(r"\[\d+\]")


class FieldDifference(NamedTuple):
    """One path at which two readings of an object differ."""

    path: str
    """As in ``spec.ports[2].name``."""
    before: Any
    """``ABSENT`` when only the later reading has the field."""
    after: Any

    @property
    def field(self) -> str:
        """Return the path without list positions, equal for all objects: ``spec.ports[].name``."""
        return _POSITION.sub("[]", self.path)

    @property
    def is_loss(self) -> bool:
        return self.after is ABSENT

    def __str__(self) -> str:
        return f"{self.path}: {self._shown(self.before)} -> {self._shown(self.after)}"

    def _shown(self, value: Any) -> str:
        if value is ABSENT:
            return "absent"
        if is_secret(last_name(self.path)):
            return REDACTED
        text = orjson.dumps(value).decode()
        return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 1]}…"


def differences(before: Object, after: Object) -> Iterator[FieldDifference]:
    """Yield the differences of two readings at one version, without server-managed metadata."""
    for path, old, new in differing(content_of(before), content_of(after)):
        yield FieldDifference(path, old, new)


def content_of(obj: Object) -> Object:
    """Return the object without the fields that the server sets."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    return {**obj, "metadata": metadata}


def digest(obj: Object) -> str:
    """Return a text with a short hash of each part of an object; equal if the objects are equal."""
    content = content_of(obj)
    metadata = content.pop("metadata")
    for name in _METADATA_PARTS:
        if name in metadata:
            content[f"metadata.{name}"] = metadata.pop(name)
    content["metadata"] = metadata
    return ";".join(f"{name}:{_hash(content[name])}" for name in sorted(content))


def changed_parts(before: str, after: str) -> list[str]:
    """Return the parts in which two digests differ."""
    old, new = (dict(_split(text)) for text in (before, after))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def changes(before: Object, after: Object) -> list[str]:
    """Return the first few differences of two readings, as ``spec.size: 3 -> 7``."""
    found = []
    for difference in differences(before, after):
        found.append(str(difference))
        if len(found) > _MAX_SHOWN_PATHS:
            return [*found[:_MAX_SHOWN_PATHS], "and more"]
    return found


def is_covered(field: str, accepted: str) -> bool:
    """Return whether a path that the user accepted covers ``field``."""
    accepted = accepted.lstrip(".")
    return field == accepted or field.startswith((f"{accepted}.", f"{accepted}["))


def _split(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(";"):
        name, _, value = part.rpartition(":")
        yield name, value


def _hash(value: Any) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()
