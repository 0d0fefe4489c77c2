"""Ownership schema: which values are atomic and which are merged by field, key or item.

Compiled once per version from ``Structural`` into a tree of ``Atom``s, which ``compare.py``,
``merge.py`` and ``remove.py`` walk. Metadata follows the built-in rules of ObjectMeta. Fields
without a schema are "deduced": maps granular, lists atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.kube.apply.field_set import FieldSet, key_element, value_element
from instar.kube.schema.structure.interning import once_per_node
from instar.kube.schema.structure.structural import Structural

NUMERIC, STRING, BOOLEAN, UNTYPED = "numeric", "string", "boolean", "untyped"


@dataclass(slots=True, eq=False)
class ListType:
    """``relation`` is ``atomic``, ``set`` or ``map``; ``keys`` only for the last."""

    relation: str
    element: Atom
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class MapType:
    """Known fields with their wire element; ``element`` types all others, None forbids them."""

    atomic: bool
    fields: dict[str, tuple[str, Atom]]
    element: Atom | None


@dataclass(slots=True, eq=False)
class Atom:
    """The types that a value may have. With several parts the value decides.

    ``loose`` means that an untyped value is allowed here or below: only there can a boolean and a
    number replace each other, which Python's ``==`` would not notice.
    """

    scalar: str | None = None
    list: ListType | None = None
    map: MapType | None = None
    loose: bool = False


def _deduced_atom() -> Atom:
    anything = Atom(scalar=UNTYPED, loose=True)
    anything.list = ListType("atomic", anything)
    anything.map = MapType(True, {}, anything)
    atom = Atom(scalar=UNTYPED, list=ListType("atomic", anything), loose=True)
    atom.map = MapType(False, {}, atom)
    return atom


DEDUCED = _deduced_atom()


class BadItem(ValueError):
    """An item without a valid key or with a duplicate one; the message is upstream's."""


def item_element(kind: ListType, item: Any) -> str:
    """Return the wire element of one item of a set or a list with keys."""
    if kind.relation == "set":
        if isinstance(item, dict):
            raise BadItem("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise BadItem("not supported: associative list with lists as elements")
        if item is None:
            raise BadItem("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if item is None:
        raise BadItem("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise BadItem("associative list with keys may not have non-map elements")
    pairs = {
        name: item[name] if name in item else kind.defaults[name]
        for name in kind.keys
        if name in item or name in kind.defaults
    }
    if not pairs:
        names = " ".join(f'"{name}"' for name in kind.keys)
        raise BadItem(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(pairs)


@dataclass(frozen=True, slots=True, eq=False)
class TypedSchema:
    """One version's schema, compiled for ownership."""

    root: Atom
    reconciled: dict[int, tuple[FieldSet, FieldSet]] = field(default_factory=dict)
    """Cache of ``managers.reconcile``: a set by identity, and its result."""


def compile_schema(schema: Structural | None) -> TypedSchema:
    """Compile the whole object: ``schema`` plus apiVersion, kind and metadata. None means
    untyped."""
    root = _object(schema, False) if schema is not None else MapType(False, {}, DEDUCED)
    root.atomic = False
    root.fields |= _fields({"apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META})
    return TypedSchema(Atom(map=root, loose=_has_loose_part(root)))


def _atom(schema: Structural, preserve: bool) -> Atom:
    return _preserving_atom(schema) if preserve or schema.preserve_unknown else _strict_atom(schema)


@once_per_node
def _preserving_atom(schema: Structural) -> Atom:
    return _new_atom(schema, True)


@once_per_node
def _strict_atom(schema: Structural) -> Atom:
    return _new_atom(schema, False)


def _new_atom(schema: Structural, preserve: bool) -> Atom:
    if schema.int_or_string:
        return DEDUCED  # a list or map is refused by validation, which can say where
    match schema.type:
        case "object":
            kind = _object(schema, preserve)
            return Atom(map=kind, loose=_has_loose_part(kind))
        case "array":
            items = _list(schema, preserve)
            return Atom(list=items, loose=items.element.loose)
        case "":
            return _untyped(schema, preserve)
        case "integer" | "number":
            return Atom(scalar=NUMERIC)
        case "boolean":
            return Atom(scalar=BOOLEAN)
        case _:
            plain = schema.raw.get("format") in (None, "", "byte")
            return Atom(scalar=STRING if plain else UNTYPED)


def _untyped(schema: Structural, preserve: bool) -> Atom:
    """Compile a node without ``type``: the value decides, with the node's map and list types."""
    if not schema.properties and schema.items is None and schema.additional is None:
        return DEDUCED
    return Atom(
        scalar=UNTYPED,
        list=_list(schema, preserve) if schema.items is not None else DEDUCED.list,
        map=_object(schema, preserve),
        loose=True,
    )


def _has_loose_part(kind: MapType) -> bool:
    if kind.element is not None and kind.element.loose:
        return True
    return any(atom.loose for _, atom in kind.fields.values())


def _object(schema: Structural, preserve: bool) -> MapType:
    preserve = preserve or schema.preserve_unknown
    properties = {name: _atom(node, preserve) for name, node in schema.properties.items()}
    if schema.embedded:
        properties |= {"apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}
    element: Atom | None = None
    if isinstance(schema.additional, Structural):
        element = _atom(schema.additional, preserve)
    elif schema.additional or preserve or not properties:
        element = DEDUCED
    return MapType(schema.map_type == "atomic", _fields(properties), element)


def _list(schema: Structural, preserve: bool) -> ListType:
    items = schema.items
    element = DEDUCED if items is None else _atom(items, preserve)
    relation = schema.list_type or "atomic"
    if relation != "map" or items is None:
        return ListType("set" if relation == "set" else "atomic", element)
    defaults = {
        name: items.properties[name].default
        for name in schema.list_map_keys
        if name in items.properties and items.properties[name].default is not None
    }
    return ListType("map", element, schema.list_map_keys, defaults)


def _fields(atoms: Mapping[str, Atom]) -> dict[str, tuple[str, Atom]]:
    return {name: (f"f:{name}", atom) for name, atom in atoms.items()}


_STRING = Atom(scalar=STRING)
_NUMBER = Atom(scalar=NUMERIC)
_BOOLEAN = Atom(scalar=BOOLEAN)
_TIME = Atom(scalar=UNTYPED)
_STRINGS = Atom(map=MapType(False, {}, _STRING))
_OWNER = Atom(
    map=MapType(
        True,
        _fields(
            {
                "apiVersion": _STRING,
                "kind": _STRING,
                "name": _STRING,
                "uid": _STRING,
                "controller": _BOOLEAN,
                "blockOwnerDeletion": _BOOLEAN,
            }
        ),
        None,
    )
)
OBJECT_META = Atom(
    map=MapType(
        False,
        _fields(
            {
                **dict.fromkeys(
                    ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"),
                    _STRING,
                ),
                "generation": _NUMBER,
                "creationTimestamp": _TIME,
                "deletionTimestamp": _TIME,
                "deletionGracePeriodSeconds": _NUMBER,
                "labels": _STRINGS,
                "annotations": _STRINGS,
                "finalizers": Atom(list=ListType("set", _STRING)),
                # Its published schema gives the key a default: a reference without uid is still an
                # item, which validation rejects.
                "ownerReferences": Atom(list=ListType("map", _OWNER, ("uid",), {"uid": ""})),
                "managedFields": Atom(list=ListType("atomic", DEDUCED)),
            }
        ),
        None,
    )
)
"""ObjectMeta as the built-in API declares it."""

SCALE = TypedSchema(
    Atom(
        map=MapType(
            False,
            _fields(
                {
                    "apiVersion": _STRING,
                    "kind": _STRING,
                    "metadata": OBJECT_META,
                    "spec": Atom(map=MapType(False, _fields({"replicas": _NUMBER}), None)),
                    "status": Atom(
                        map=MapType(
                            False, _fields({"replicas": _NUMBER, "selector": _STRING}), None
                        )
                    ),
                }
            ),
            None,
        )
    )
)
"""``autoscaling/v1`` Scale, for writes through the scale subresource."""
