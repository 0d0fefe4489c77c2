"""Values worth trying where two schemas of one place differ: the edges of both.

Takes the node that shall accept and the node that shall not; yields candidates, small first.
No candidate is promised to do anything: ``witness.py`` tries them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from instar.api.crd_codec import copy_json
from instar.reviewer.samples import (
    distinct,
    members,
    minimal,
    numbers,
    small_list,
    small_object,
    strings,
    without,
)
from instar.reviewer.texts import FORMAT_TEXTS, LONGEST, matching, plain
from instar.reviewer.types import admitted
from instar.schema.formats import canonical

Node = Mapping[str, Any]

UNKNOWN = "unknownField"
_TEXTS = ("", "a", "A", "0", "-", "a b", "a.b", "a_b", "A-B", "/a", "a/", "é", "not-a-format", "*")
_LITERAL = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"")
_NUMBER = re.compile(r"(?<![\w.'\"])-?\d+(?:\.\d+)?(?![\w'\"])")


def candidates(accepting: Node, refusing: Node, hint: str = "") -> Iterator[Any]:
    """``hint`` is a CEL expression or the name of a member that the finding is about."""
    kinds = admitted(accepting)
    yield minimal(accepting)
    if accepting.get("nullable") or refusing.get("nullable"):
        yield None
    yield from accepting.get("enum") or ()
    if "string" in kinds:
        yield from _texts(accepting, refusing, hint)
    if kinds & {"integer", "number"}:
        yield from _numbers(accepting, refusing, hint)
    if "boolean" in kinds:
        yield from (False, True)
    if "array" in kinds:
        yield from _lists(accepting, refusing, hint)
    if "object" in kinds:
        yield from _objects(accepting, refusing, hint)


def _texts(accepting: Node, refusing: Node, hint: str) -> Iterator[str]:
    yield from strings(accepting)
    pattern = accepting.get("pattern")
    for length in sorted(_lengths(accepting, refusing, "Length")):
        yield plain(length)
        if pattern:
            yield from islice(matching(str(pattern), least=length), 3)
    if pattern:
        yield from matching(str(pattern))
    for side in (accepting, refusing):
        yield from FORMAT_TEXTS.get(canonical(str(side.get("format") or "")), ())
    yield from literals(hint)
    yield from _TEXTS


def _numbers(accepting: Node, refusing: Node, hint: str) -> Iterator[float]:
    yield from numbers(accepting)
    edges: list[float] = []
    for side in (accepting, refusing):
        for name in ("minimum", "maximum", "multipleOf"):
            edge = side.get(name)
            if isinstance(edge, (int, float)):
                edges += [edge, edge + 1, edge - 1, edge + 0.5, edge - 0.5]
    edges += [0, 1, -1, 2, 0.5, 2**31, -(2**31) - 1, 2**53]
    edges += [float(text) if "." in text else int(text) for text in _NUMBER.findall(hint)]
    for edge in edges:
        yield int(edge) if float(edge).is_integer() else edge


def _lengths(accepting: Node, refusing: Node, word: str) -> set[int]:
    """Sizes just inside and just outside every bound of either side."""
    found: set[int] = set()
    for side in (accepting, refusing):
        low, high = side.get(f"min{word}"), side.get(f"max{word}")
        found |= {int(low) - 1, int(low)} if low is not None else set()
        found |= {int(high), int(high) + 1} if high is not None else set()
    return {size for size in found if 0 <= size <= LONGEST}


def _lists(accepting: Node, refusing: Node, hint: str) -> Iterator[list[Any]]:
    for length in sorted(_lengths(accepting, refusing, "Items") | {0, 1, 2}):
        yield small_list(accepting, length)
    items = accepting.get("items")
    if not isinstance(items, Mapping):
        return
    one = minimal(items)
    yield [one, copy_json(one)]
    yield from _alike(accepting, refusing, items)
    if hint:
        for item in islice(candidates(items, items, hint), 30):
            yield [item]
            yield [item, copy_json(item)]


def _alike(accepting: Node, refusing: Node, items: Node) -> Iterator[list[Any]]:
    """Two items the accepting side tells apart and the refusing one does not."""
    keys = refusing.get("x-kubernetes-list-map-keys") or []
    properties = items.get("properties") or {}
    for name, child in properties.items():
        if name in keys:
            continue
        values = distinct(child, 2)
        if len(values) == 2:
            base = minimal(items)
            fixed = {key: minimal(properties[key]) for key in keys if key in properties}
            yield [{**base, **fixed, name: value} for value in values]


def _objects(accepting: Node, refusing: Node, hint: str) -> Iterator[dict[str, Any]]:
    base = small_object(accepting)
    yield base
    if hint and hint in base:
        yield without(base, hint)
    yield {**base, UNKNOWN: "a"}
    yield {**base, UNKNOWN: {"a": "b"}}
    for size in sorted(_lengths(accepting, refusing, "Properties") | {1, 2}):
        if size > len(base):
            yield {**base, **members(accepting, size - len(base), base)}
        else:
            yield dict(islice(base.items(), size))
    free = accepting.get("additionalProperties")
    if isinstance(free, Mapping):
        for value in islice(candidates(free, free, hint), 12):
            yield {**base, "key": value}
    if accepting.get("x-kubernetes-preserve-unknown-fields") or accepting.get("type") is None:
        for name, child in (refusing.get("properties") or {}).items():
            for value in ("a", 0, False, [], {}, minimal(child)):
                yield {**base, name: value}
    yield {**base, "apiVersion": "v1", "kind": "Thing"}
    yield {**base, "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}}
    yield from _filled(accepting, base, hint)


def _filled(node: Node, base: dict[str, Any], hint: str) -> Iterator[dict[str, Any]]:
    """Members tried one at a time, then two at a time; those the hint names come first."""
    properties: Mapping[str, Node] = node.get("properties") or {}
    names = sorted(properties, key=lambda name: (name not in hint, name))[:30]
    ways = {name: list(_ways(properties[name], hint)) for name in names}
    for name in names:
        for value in ways[name]:
            yield {**base, name: value}
    for first in names[:8]:
        for second in names[:8]:
            if first < second:
                for one in ways[first][:6]:
                    for other in ways[second][:6]:
                        yield {**base, first: one, second: other}
    if hint:
        named = [name for name in names if name in hint][:6]
        yield {**base, **{name: ways[name][0] for name in named if ways[name]}}


def _ways(node: Node, hint: str) -> Iterator[Any]:
    """A handful of values of one member."""
    if node.get("enum"):
        yield from node["enum"][:8]
        return
    seen: list[Any] = []
    for value in islice(candidates(node, node, hint if len(hint) < 2000 else ""), 60):
        if value not in seen and not (isinstance(value, str) and len(value) > 100):
            seen.append(value)
            yield value
        if len(seen) >= 8:
            return


def literals(expression: str) -> Iterator[str]:
    """The string constants of a CEL expression: what it compares with is worth trying."""
    for single, double in _LITERAL.findall(expression):
        text = single or double
        yield text
        if math.isfinite(len(text)) and text:
            yield text + "a"
