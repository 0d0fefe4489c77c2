"""Equal parts of schemas are one part, however many CRDs and versions hold them.

Versions of a CRD are mostly alike, and whole families of CRDs repeat the same pod templates and
conditions. Compiled once per part instead of once per place, they cost memory once. What people
read (descriptions) is left out: no rule does. A part lives as long as a schema that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, TypeVar
from weakref import WeakValueDictionary, ref

import orjson

from instar.kube.schema.structure.structural import Structural

T = TypeVar("T")
_PROSE = frozenset({"description", "title", "example", "externalDocs"})
_CHILDREN = frozenset({"properties", "items", "additionalProperties"})
_LOOKS_BELOW = b'"fieldPath"'
"""A rule that names a field by its path has to find it in the schema as it was written."""
_SHORT = 32
"""Bytes up to which a text stands for itself."""
_NOT_MADE = object()
_known: WeakValueDictionary[tuple[object, ...], Structural] = WeakValueDictionary()


def shared(node: Structural) -> Structural:
    """The same schema, made of parts that others may hold as well."""
    properties = {name: shared(item) for name, item in node.properties.items()}
    items = None if node.items is None else shared(node.items)
    additional = node.additional
    if isinstance(additional, Structural):
        additional = shared(additional)
    raw = {name: value for name, value in node.raw.items() if name not in _CHILDREN | _PROSE}
    text = _text(raw)
    if _LOOKS_BELOW in text:
        raw = dict(node.raw)
        text = _text(raw)
    # Parts are told apart by who they are: a part keeps those below it, so no id is used again.
    key = (
        text if len(text) <= _SHORT else blake2b(text, digest_size=_SHORT).digest(),
        node.embedded,
        tuple((name, id(item)) for name, item in properties.items()),
        id(items),
        additional if isinstance(additional, bool) else id(additional),
    )
    found = _known.get(key)
    if found is None:
        found = replace(node, properties=properties, items=items, additional=additional, raw=raw)
        _known[key] = found
    return found


def once_per_node(make: Callable[[Structural], T]) -> Callable[[Structural], T]:
    """What is made of a node is made once, and kept with it."""

    def made(node: Structural) -> T:
        found = node.made.get(make, _NOT_MADE)
        if found is _NOT_MADE:
            found = node.made[make] = make(node)
        result: T = found
        return result

    return made


def once_while_used(make: Callable[[Structural], T]) -> Callable[[Structural], T]:
    """The same for what holds its node: kept with it as long as somebody else has it. Else both
    would hold each other, and a schema that is gone would lie there until the collector comes."""

    def made(node: Structural) -> T:
        kept = node.made.get(make)
        found: T | None = kept() if kept is not None else None
        if found is None:
            found = make(node)
            node.made[make] = ref(found)
        return found

    return made


def _text(raw: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(raw)
    except TypeError:  # integers beyond 64 bits
        return repr(raw).encode()
