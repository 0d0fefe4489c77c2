"""Statistics of field use over many objects: counts, values, managers and times.

Called by the field census, ``instar fields``, the reviewer and snapshot redaction. Objects are
added one at a time and not kept. Every field that the schema names is counted, and at most
``MOST_FIELDS`` others (keys of free-form maps count as one), so memory is bounded.
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
    """Counts for each field the objects that set it, with their values and field managers."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema: Schema = schema or {}
        self.fields: dict[str, FieldUse] = {}
        self.total = 0
        self._undeclared = 0

    def add(self, obj: Object) -> None:
        self.total += 1
        found: dict[str, list[Any]] = {}
        declared: set[str] = set()
        body = {name: value for name, value in obj.items() if name not in _FRAME}
        for path, value, node in _leaves(body, self._schema):
            found.setdefault(path, []).append(value)
            if node is not None:
                declared.add(path)
        for path, values in found.items():
            use = self._use(path, path in declared)
            if use is not None:
                use.objects += 1
                _note_values(use, values)
        self._note_owners(obj["metadata"].get("managedFields") or (), found)

    def of(self, path: str) -> FieldUse:
        """The counts of one field; zero where no object sets it."""
        known = self.fields.get(path)
        return known if known is not None else FieldUse(path)

    def _use(self, path: str, declared: bool) -> FieldUse | None:
        known = self.fields.get(path)
        if known is None and (declared or self._undeclared < MOST_FIELDS):
            self._undeclared += not declared
            known = self.fields[path] = FieldUse(path)
        return known

    def _note_owners(
        self, entries: Iterable[Mapping[str, Any]], found: Mapping[str, list[Any]]
    ) -> None:
        """Count the managers of each field of one object.

        A container that no manager owns by itself, as server-side apply leaves it, counts for the
        managers of the fields in it.
        """
        owners = [owner for owner in map(self.owner, entries) if owner is not None]
        for path, values in found.items():
            use = self.fields.get(path)
            if use is None:
                continue
            exact = [owner for owner in owners if owner.owns(path)]
            if not exact and any(isinstance(value, dict | list) for value in values):
                exact = [owner for owner in owners if owner.owns_part_of(path)]
            use.managers.update({owner.manager for owner in exact})
            times = [owner.time for owner in exact if owner.time]
            use.since = min([use.since, *times] if use.since else times, default="")

    def owner(self, entry: Mapping[str, Any]) -> EntryOwner | None:
        """Return what an entry of managedFields owns; None if it cannot be read."""
        try:
            owned = parse(entry.get("fieldsV1"))
        except BadFieldSet:
            return None
        paths: set[str] = set()
        whole: set[str] = set()
        for member in members(owned):
            path, node = _located(member, self._schema)
            paths.add(path)
            if node.get("x-kubernetes-map-type") == "atomic":
                whole.add(f"{path}.")
            if node.get("x-kubernetes-list-type", "atomic") == "atomic":
                whole.add(f"{path}[")
        manager = str(entry.get("manager") or "unknown")
        return EntryOwner(manager, str(entry.get("time") or ""), paths, tuple(whole))


@dataclass(frozen=True, slots=True)
class EntryOwner:
    """One entry of managedFields, with its paths as the tally names them."""

    manager: str
    time: str
    paths: set[str]
    whole: tuple[str, ...]
    """Prefixes of what lies in an atomic list or map of this owner: it has no entries of its own.

    The member ``.`` of any other list or map says nothing about what lies in it.
    """

    def owns(self, path: str) -> bool:
        return path in self.paths or path.startswith(self.whole)

    def owns_part_of(self, path: str) -> bool:
        return any(each.startswith((f"{path}.", f"{path}[")) for each in self.paths)


def is_owned(entries: Iterable[Mapping[str, Any]], schema: Schema, path: str) -> bool:
    """Return whether an entry of managedFields owns the field or a part of it."""
    tally = FieldTally(schema)
    owners = (tally.owner(entry) for entry in entries)
    return any(o is not None and (o.owns(path) or o.owns_part_of(path)) for o in owners)


def _located(path: Iterable[str], schema: Schema) -> tuple[str, Schema]:
    """Return the tally's name of a path of wire elements, and the schema of its value."""
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
    return out.removeprefix("."), node


def _leaves(value: Any, schema: Schema) -> Iterator[tuple[str, Any, Schema | None]]:
    """Yield every field with its value and its schema, None where the schema has no such field.
    Containers are included, so that they can be looked up too.
    """
    todo: list[tuple[str, Any, Schema | None]] = [("", value, schema)]
    while todo:
        path, item, node = todo.pop()
        if path:
            yield path, item, node
        within: Schema = {} if node is None else node
        if isinstance(item, dict):
            known = within.get("properties") or {}
            for name, inner in item.items():
                shown = name if name in known or not _is_map(within) else ANY_KEY
                there = _child(within, name) if shown is ANY_KEY or name in known else None
                todo.append((f"{path}.{shown}".removeprefix("."), inner, there))
        elif isinstance(item, list):
            there = _items(within) if "items" in within else None
            todo += [(f"{path}{ANY_ITEM}", inner, there) for inner in item]


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
