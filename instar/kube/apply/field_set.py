"""Sets of field paths, represented as the ``fieldsV1`` trie of managedFields.

Used by all of ``kube/apply`` and the tools that read managedFields.

A set is a plain ``dict``: keys are path elements in their wire text (``f:spec``,
``k:{"name":"a"}``, ``v:"x"``, ``i:0``), an empty dict is a member without children and ``.`` marks
a node that is a member besides its children. So an entry of ``managedFields`` is a set without
conversion. No operation changes its arguments, and results share nodes with them: treat every set
as frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from instar.base.field_errors import JSON_ESCAPED, go_float, go_number, go_quote

FieldSet = dict[str, Any]
"""``dict[str, FieldSet]``; a recursive alias would not accept plain JSON values."""

LEAF: FieldSet = {}
"""The shared node of a member without children; never written to."""

SELF = "."


class BadFieldSet(ValueError):
    """The text of ``fieldsV1`` is not a set; the message is upstream's."""


def is_member(node: Mapping[str, Any]) -> bool:
    return not node or SELF in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of either side."""
    if not right:
        return left
    if not left:
        return right
    out = dict(left)
    for key, node in right.items():
        mine = out.get(key)
        out[key] = node if mine is None else _union_nodes(mine, node)
    return out


def _union_nodes(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        return right if is_member(right) else {SELF: LEAF, **right}
    if not right:
        return left if SELF in left else {SELF: LEAF, **left}
    return union(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of ``left`` that are not in ``right``; children are compared
    separately."""
    if not right or not left:
        return left
    out: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        kept = node if other is None else _subtract(node, other)
        if kept is not None:
            out[key] = kept
    return out


def _subtract(node: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return ``node`` without ``other``, or None when nothing is left of it."""
    if not node:
        return None if is_member(other) else node
    children = {key: child for key, child in node.items() if key != SELF}
    rest = difference(children, other)
    if SELF in node and not is_member(other):
        return {SELF: LEAF, **rest} if rest else LEAF
    return rest or None


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of both sides."""
    out: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None or key == SELF:
            continue
        shared = intersection(node, other) if node and other else {}
        if is_member(node) and is_member(other):
            out[key] = {SELF: LEAF, **shared} if shared else LEAF
        elif shared:
            out[key] = shared
    return out


def includes(fields: FieldSet, some: FieldSet) -> bool:
    """Return whether every member of ``some`` is a member, in time proportional to ``some``."""
    for key, node in some.items():
        mine = fields.get(key)
        if mine is None or (mine and SELF not in mine and is_member(node)):
            return False
        if node and key != SELF and not includes(mine, node):
            return False
    return True


def intersects(fields: FieldSet, some: FieldSet) -> bool:
    """Return whether any member of ``some`` is a member, in time proportional to ``some``."""
    for key, node in some.items():
        mine = fields.get(key)
        if mine is None or key == SELF:
            continue
        if (is_member(node) and is_member(mine)) or (node and mine and intersects(mine, node)):
            return True
    return False


def without_subtrees(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return ``left`` without the members of ``right`` and everything below them."""
    out: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            out[key] = node
        elif not is_member(other) and node:
            rest = without_subtrees(node, other)
            if rest:
                out[key] = rest
        elif not is_member(other):
            out[key] = node
    return out


def contains(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Return whether this path (of wire elements) is a member."""
    node = fields
    for element in path:
        child = node.get(element)
        if child is None:
            return False
        node = child
    return is_member(node)


def single(path: tuple[str, ...]) -> FieldSet:
    """Return the set of one path."""
    node: FieldSet = LEAF
    for element in reversed(path):
        node = {element: node}
    return node


def leaves(fields: FieldSet) -> FieldSet:
    """Return the members that have no member below them."""
    return {key: leaves(node) if node else LEAF for key, node in fields.items() if key != SELF}


def members(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Yield every member as a path of wire elements, in upstream's order: a level, then below
    it."""
    keys = sorted((key for key in fields if key != SELF), key=_order)
    for key in keys:
        if is_member(fields[key]):
            yield (key,)
    for key in keys:
        for path in members(fields[key]):
            yield (key, *path)


def has_at_most(most: int, fields: FieldSet) -> bool:
    """Return whether the set has at most ``most`` nodes, without counting further."""
    waiting, seen = [fields], 0
    while waiting and seen <= most:
        node = waiting.pop()
        seen += len(node)
        waiting += [child for child in node.values() if child]
    return seen <= most


def path_text(path: tuple[str, ...]) -> str:
    """Return a path as conflicts and errors print it: ``.spec.ports[port=80].name``."""
    return "".join(element_text(element) for element in path)


def element_text(element: str) -> str:
    prefix, content = element[:2], element[2:]
    if prefix == "f:":
        return f".{content}"
    if prefix == "k:":
        pairs = sorted(orjson.loads(content).items())
        return "[" + ",".join(f"{name}={_key_value_text(value)}" for name, value in pairs) + "]"
    if prefix == "v:":
        return f"[={_key_value_text(orjson.loads(content))}]"
    return f"[{content}]"


def _key_value_text(value: Any) -> str:
    """Return a key's value inside a path; only scalars are valid keys, but upstream prints any."""
    if isinstance(value, dict):
        return "".join(f"{name}={_key_value_text(item)}" for name, item in sorted(value.items()))
    if isinstance(value, list):
        return "[" + ",".join(map(_key_value_text, value)) + "]"
    if isinstance(value, str):
        return go_quote(value)
    return go_number(value) if isinstance(value, float) else value_text(value)


_LONGEST_KEPT = 256
"""Maximum length of cached texts: names and keys, not contents."""


def _scalar_text(value: str | int | float | bool | None) -> str:
    if isinstance(value, str) and len(value) > _LONGEST_KEPT:
        return _canonical_scalar(value)
    return _known_spelling(value)


def _canonical_scalar(value: str | int | float | bool | None) -> str:
    if isinstance(value, float):
        # Minus zero is read back as zero.
        return go_float(value) if value else "0"
    if not isinstance(value, str):
        return orjson.dumps(value).decode() if abs(value or 0) < 2**63 else str(value)
    text = orjson.dumps(value).decode()
    # Equal paths must have equal text.
    for char, escape in JSON_ESCAPED:
        text = text.replace(char, escape)
    return text


_known_spelling = lru_cache(maxsize=8192, typed=True)(_canonical_scalar)


def value_text(value: Any) -> str:
    """Return a JSON value as compact text with sorted keys and canonical numbers."""
    if isinstance(value, dict):
        inner = (f"{_scalar_text(key)}:{value_text(item)}" for key, item in sorted(value.items()))
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(value_text(item) for item in value) + "]"
    return _scalar_text(value)


def key_element(pairs: Mapping[str, Any]) -> str:
    """Return the element of an item in a list with keys."""
    return "k:" + value_text(pairs)


def value_element(value: Any) -> str:
    """Return the element of an item in a set."""
    return "v:" + value_text(value)


def parse(raw: Any) -> FieldSet:
    """Parse ``fieldsV1`` of a request or of storage into a set with canonical elements."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise BadFieldSet(f"expected an object, got {type(raw).__name__}")
    out = _parse_children(raw)
    out.pop(SELF, None)
    return out


def _parse_children(raw: dict[str, Any]) -> FieldSet:
    out: FieldSet = {}
    for key, node in raw.items():
        if key[:2] != "f:":
            read = _canonical if len(key) > _LONGEST_KEPT else _known_canonical
            element = key if key == SELF else read(key)
            if element is None:
                continue
            key = element
        if not node:
            out[key] = LEAF
            continue
        if not isinstance(node, dict):
            raise BadFieldSet(f"expected an object at {key}, got {type(node).__name__}")
        children = _parse_children(node)
        if children:
            out[key] = LEAF if len(children) == 1 and SELF in children else children
    return out


def _canonical(key: str) -> str | None:
    """Return the canonical text of an element; None for an unknown type, which upstream drops."""
    if len(key) < 2:
        raise BadFieldSet("key must be 2 characters long:")
    if key[1] != ":":
        raise BadFieldSet(f"missing colon: {key}")
    kind, content = key[0], key[2:]
    try:
        if kind == "k":
            pairs = orjson.loads(content)
            if not isinstance(pairs, dict):
                raise BadFieldSet(f"expected an object of keys, got {content}")
            return key_element(pairs)
        if kind == "v":
            return value_element(orjson.loads(content))
        if kind == "i":
            return f"i:{int(content)}"
    except ValueError as problem:
        raise BadFieldSet(str(problem)) from problem
    return None


_known_canonical = lru_cache(maxsize=8192)(_canonical)


def text(fields: FieldSet) -> str:
    """Return ``fieldsV1`` in upstream's order: itself, fields, keyed items, values, indexes."""
    parts = ['".":{}'] if SELF in fields else []
    keys = sorted((key for key in fields if key != SELF), key=_order)
    parts += [f"{_scalar_text(key)}:{text(fields[key])}" for key in keys]
    return "{" + ",".join(parts) + "}"


def _order(key: str) -> tuple[int, Any]:
    content = key[2:]
    match key[0]:
        case "k":
            pairs = sorted(orjson.loads(content).items())
            return (1, [(name, _value_order(value)) for name, value in pairs])
        case "v":
            return (2, _value_order(orjson.loads(content)))
        case "i":
            return (3, int(content))
        case _:
            return (0, content)


def _value_order(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, value_text(value))
