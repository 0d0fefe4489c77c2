"""Statistics of field use over many objects: counts, values, managers, and since when.

Called by the field census, ``instar fields``, the reviewer and snapshot redaction. Objects are
added one at a time and not kept; memory is bounded by the schema's fields (keys of free-form maps
count as one).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.kube.apply.field_set import BadFieldSet, members, parse

MOST_VALUES = 8
MOST_FIELDS = 4000
ANY_KEY, ANY_ITEM = "*", "[*]"
_FRAME = ("apiVersion", "kind", "metadata")
Schema = Mapping[str, Any]


@dataclass
class FieldUse:
    """Use of one field over all objects."""

    path: str
    objects: int = 0
    values: Counter[str] = field(default_factory=Counter)
    many: bool = False
    """Whether there are more values than are kept."""
    managers: Counter[str] = field(default_factory=Counter)
    """Number of objects per manager that sets the field."""
    since: str = ""
    """Earliest time of a present manager's entry; empty if there is none."""

    def says(self, total: int) -> str:
        """Return a sentence: ``3 of 4120 objects set spec.legacy, all by helm``."""
        if not self.objects:
            return f"none of {counted(total, 'object')} sets {self.path}"
        verb = "sets" if self.objects == 1 else "set"
        text = f"{self.objects} of {counted(total, 'object')} {verb} {self.path}"
        names = [name for name, _ in self.managers.most_common(3)]
        if len(self.managers) == 1 and self.managers[names[0]] == self.objects:
            return f"{text}, all by {names[0]}"
        return f"{text}, by {', '.join(names)}" if names else text


class FieldTally:
    def __init__(self, schema: Schema | None) -> None:
        self._schema: Schema = schema or {}
        self.fields: dict[str, FieldUse] = {}
        self.total = 0

    def add(self, obj: Object) -> None:
        self.total += 1
        found: dict[str, list[Any]] = {}
        body = {name: value for name, value in obj.items() if name not in _FRAME}
        for path, value in _leaves(body, self._schema):
            found.setdefault(path, []).append(value)
        for path, values in found.items():
            use = self._use(path)
            if use is not None:
                use.objects += 1
                _note_values(use, values)
        for entry in obj["metadata"].get("managedFields") or ():
            self._note_owner(entry, found)

    def of(self, path: str) -> FieldUse:
        """Return the use of the field or of fields below it."""
        known = self.fields.get(path)
        return known if known is not None else FieldUse(path)

    def _use(self, path: str) -> FieldUse | None:
        known = self.fields.get(path)
        if known is None and len(self.fields) < MOST_FIELDS:
            known = self.fields[path] = FieldUse(path)
        return known

    def _note_owner(self, entry: Mapping[str, Any], found: Mapping[str, object]) -> None:
        try:
            owned = parse(entry.get("fieldsV1"))
        except BadFieldSet:
            return
        paths = {general(path, self._schema) for path in members(owned)}
        time = str(entry.get("time") or "")
        for path in found:
            if not _owns(paths, path):
                continue
            use = self.fields.get(path)
            if use is None:
                continue
            use.managers[str(entry.get("manager") or "unknown")] += 1
            if time and (not use.since or time < use.since):
                use.since = time


def general(path: Iterable[str], schema: Schema) -> str:
    """Convert a path of wire elements to a statistics path: ``spec.ports[*].name``."""
    out, node = "", schema
    for element in path:
        kind, _, name = element.partition(":")
        if kind != "f":
            out += ANY_ITEM
            node = _items(node)
            continue
        known = name in (node.get("properties") or {})
        out += f".{name if known or not _is_map(node) else ANY_KEY}"
        node = _child(node, name)
    return out.removeprefix(".")


def _owns(paths: set[str], path: str) -> bool:
    """Return whether the path, or an atomic parent of it, is owned."""
    return path in paths or any(path.startswith((f"{item}.", f"{item}[")) for item in paths)


def _leaves(value: Any, schema: Schema) -> Iterator[tuple[str, Any]]:
    """Yield every field with its value, containers included, so that they can be looked up too."""
    todo: list[tuple[str, Any, Schema]] = [("", value, schema)]
    while todo:
        path, item, node = todo.pop()
        if path:
            yield path, item
        if isinstance(item, dict):
            known = node.get("properties") or {}
            for name, inner in item.items():
                shown = name if name in known or not _is_map(node) else ANY_KEY
                todo.append((f"{path}.{shown}".removeprefix("."), inner, _child(node, name)))
        elif isinstance(item, list):
            todo += [(f"{path}{ANY_ITEM}", inner, _items(node)) for inner in item]


def _note_values(use: FieldUse, values: list[Any]) -> None:
    if use.many:
        return
    shown = {orjson.dumps(item).decode() for item in values if not isinstance(item, dict | list)}
    use.values.update(text if len(text) <= 40 else f"{text[:39]}…" for text in shown)
    if len(use.values) > MOST_VALUES:
        use.many = True
        use.values.clear()


def _is_map(node: Schema) -> bool:
    return bool(node.get("additionalProperties"))


def _child(node: Schema, name: str) -> Schema:
    known = (node.get("properties") or {}).get(name)
    if known is None:
        known = node.get("additionalProperties")
    return known if isinstance(known, Mapping) else {}


def _items(node: Schema) -> Schema:
    found = node.get("items")
    return found if isinstance(found, Mapping) else {}
