"""Interning of schema nodes: equal subtrees of all CRDs and versions become one object.

Called by ``compiled.py`` and the compilers of pruning, defaulting and validation. Versions of a CRD
are mostly alike, and many CRDs repeat pod templates and conditions; equal subtrees are compiled
once and take memory once. Descriptions are left out, because no rule reads them. A node is freed
with the last schema that uses it.
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
_FIELD_PATH_KEY = b'"fieldPath"'
"""A rule with a fieldPath must find the field in the schema as written."""
_SHORT = 32
"""Bytes up to which a text is its own key instead of a digest."""
_NOT_MADE = object()
_known: WeakValueDictionary[tuple[object, ...], Structural] = WeakValueDictionary()


def intern_node(node: Structural) -> Structural:
    """Return an equal schema made of interned nodes."""
    properties = {name: intern_node(item) for name, item in node.properties.items()}
    items = None if node.items is None else intern_node(node.items)
    additional = node.additional
    if isinstance(additional, Structural):
        additional = intern_node(additional)
    raw = {name: value for name, value in node.raw.items() if name not in _CHILDREN | _PROSE}
    text = _text(raw)
    if _FIELD_PATH_KEY in text:
        raw = dict(node.raw)
        text = _text(raw)
    # Children are compared by id: a node keeps its children alive, so no id is reused.
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
    """Decorate a function of a node so that its result is cached in the node."""

    def made(node: Structural) -> T:
        found = node.made.get(make, _NOT_MADE)
        if found is _NOT_MADE:
            found = node.made[make] = make(node)
        result: T = found
        return result

    return made


def once_while_used(make: Callable[[Structural], T]) -> Callable[[Structural], T]:
    """Like ``once_per_node`` for results that refer to their node: kept by a weak reference,
    because a cycle would keep an unused schema alive until the garbage collector runs."""

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
