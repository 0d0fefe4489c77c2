"""Label and field selectors of a list or watch, applied at the request's version.

``read.py`` and ``watch.py`` call it. Most cache entries show the requested version's fields without
a conversion (``matches_entry``) and are matched directly; the caller must convert others first, and
matches them with ``matches``. Name and namespace are matched by the key of an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from instar.kube.api.crd import Selectable
from instar.kube.api.selectors import FieldSelector, LabelSelector
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry

_KEY_FIELDS = ("metadata.name", "metadata.namespace")


class Selection:
    """The selectors of one request."""

    def __init__(
        self, target: Target, labels: LabelSelector | None, fields: FieldSelector | None
    ) -> None:
        self._target = target
        self._labels = labels
        self._fields = fields
        self.everything = labels is None and fields is None
        self.name = None if fields is None else fields.exact("metadata.name")
        """The only name that can match, if the field selector has one."""
        self.looks_inside = _looks_inside(target, labels, fields)
        """Whether a selector reads fields that a conversion may change."""

    def matches_entry(self, entry: CacheEntry) -> bool:
        """Return whether ``keeps`` can match the entry. Raises if the CRD has lost its stored
        version."""
        if not self.looks_inside:
            return True
        return self._target.codec.is_direct(entry, self._target.version)

    def names(self, suffix: str) -> bool:
        """Return whether an object under this key can match."""
        return self.name is None or suffix.rpartition("/")[2] == self.name

    def keeps(self, entry: CacheEntry) -> bool:
        """Return whether the entry matches, without converting it."""
        if self._labels is not None and not self._labels.matches(entry.labels):
            return False
        return self._fields is None or self._fields.matches(self._field_of(entry))

    def matches(self, view: bytes) -> bool:
        """Return whether an object at the request's version matches."""
        if self.everything:
            return True
        obj = orjson.loads(view)
        metadata = obj.get("metadata", {})
        if self._labels is not None and not self._labels.matches(metadata.get("labels") or {}):
            return False
        if self._fields is None:
            return True

        def value(field: str) -> str:
            if field in _KEY_FIELDS:
                return str(metadata.get(field.partition(".")[2], ""))
            return field_value(obj, self._target.version.selectable[field])

        return self._fields.matches(value)

    def _field_of(self, entry: CacheEntry) -> Callable[[str], str]:
        namespace, _, name = entry.suffix.rpartition("/")
        target = self._target
        decoded: list[dict[str, Any]] = []

        def value(field: str) -> str:
            if field == "metadata.name":
                return name
            if field == "metadata.namespace":
                return namespace
            if not decoded:
                decoded.append(orjson.loads(target.codec.direct_views([entry], target.version)[0]))
            return field_value(decoded[0], target.version.selectable[field])

        return value


def _looks_inside(
    target: Target, labels: LabelSelector | None, fields: FieldSelector | None
) -> bool:
    if labels is not None and target.serving.converts_remotely:
        return True
    return fields is not None and any(term.field not in _KEY_FIELDS for term in fields.terms)


def field_value(obj: dict[str, Any], field: Selectable) -> str:
    """Return a selectable field as the string it is compared with; missing and null are empty,
    unless the field defines another default."""
    value = _at(obj, field.path)
    if not value and field.instead:
        value = _at(obj, field.instead)
    if value is None or isinstance(value, dict | list):
        return field.unset
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _at(obj: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value
