"""Which objects a list or watch means: label and field selectors at the request's version.

Selectors judge an object as the request's version shows it. Most entries show that without being
converted (``is_direct``) and are judged as they lie in the cache; the others must be converted
first, which is the caller's part. Name and namespace are in the key and need neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from instar.kube.api.crd import Selectable
from instar.kube.api.selectors import FieldSelector, LabelSelector
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry

_IN_THE_KEY = ("metadata.name", "metadata.namespace")


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
        """The one name that can match, if the selector says so."""
        self.looks_inside = _looks_inside(target, labels, fields)
        """Whether something is asked that a conversion may have changed."""

    def by_entry(self, entry: CacheEntry) -> bool:
        """Whether ``keeps`` can judge the entry. Raises where its version has left the CRD."""
        if not self.looks_inside:
            return True
        return self._target.codec.is_direct(entry, self._target.version)

    def names(self, suffix: str) -> bool:
        """Whether an object under this key can match at all."""
        return self.name is None or suffix.rpartition("/")[2] == self.name

    def keeps(self, entry: CacheEntry) -> bool:
        if self._labels is not None and not self._labels.matches(entry.labels):
            return False
        return self._fields is None or self._fields.matches(self._field_of(entry))

    def matches(self, view: bytes) -> bool:
        """The same for an object already at the request's version."""
        if self.everything:
            return True
        obj = orjson.loads(view)
        metadata = obj.get("metadata", {})
        if self._labels is not None and not self._labels.matches(metadata.get("labels") or {}):
            return False
        if self._fields is None:
            return True

        def value(field: str) -> str:
            if field in _IN_THE_KEY:
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
                view = target.codec.view_now(entry, target.version)
                assert view is not None, "only a direct entry is judged by what it holds"
                decoded.append(orjson.loads(view))
            return field_value(decoded[0], target.version.selectable[field])

        return value


def _looks_inside(
    target: Target, labels: LabelSelector | None, fields: FieldSelector | None
) -> bool:
    if labels is not None and target.serving.converts_remotely:
        return True
    return fields is not None and any(term.field not in _IN_THE_KEY for term in fields.terms)


def field_value(obj: dict[str, Any], field: Selectable) -> str:
    """A selectable field as the string it is compared by; missing and null are empty, unless the
    field says what it is then."""
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
