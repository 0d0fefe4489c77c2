"""Makes values from a schema: the smallest valid one and its neighbours. Deterministic.

``placing.py``, ``candidates.py`` and ``instar test --write`` call it. Callers confirm the values
with the real validator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from instar.base.json_values import copy_json, same_json
from instar.kube.schema.formats.named import canonical
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.validation.validate import Validator, compile_validator
from instar.tools.reviewer.types import admitted_types
from instar.tools.reviewer.witnesses.texts import FORMAT_TEXTS, matching, text_of_length

Node = Mapping[str, Any]

_MAX_DEPTH = 24
_UNION_KEYWORDS = ("required",)
"""Keywords whose lists are joined when two schemas are merged."""
_MOST_ITEMS = 1200


class Samples:
    """Makes values; caches the smallest value and the validator of every node."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Node, Any]] = {}
        self._validators: dict[int, tuple[Node, Validator]] = {}

    def minimal(self, node: Node, depth: int = 0) -> Any:
        """Return the smallest valid value, as far as the schema tells."""
        # The node is kept beside its value, so that no other can take its id.
        if id(node) not in self._known:
            self._known[id(node)] = (node, self._smallest(node, depth))
        return copy_json(self._known[id(node)][1])

    def _smallest(self, node: Node, depth: int) -> Any:
        for value in islice(self._guesses(node, depth), 60):
            if self.fits(node, value):
                return value
        return next(self._guesses(node, depth), None)

    def fits(self, node: Node, value: Any) -> bool:
        return not self._validator(node).validate(value)

    def _validator(self, node: Node) -> Validator:
        if id(node) not in self._validators:
            self._validators[id(node)] = (node, compile_validator(structural(node)))
        return self._validators[id(node)][1]

    def _guesses(self, node: Node, depth: int) -> Iterator[Any]:
        yield from self._plain_guesses(node, depth)
        for merged in branches(node):
            yield from islice(self._plain_guesses(merged, depth), 12)

    def _plain_guesses(self, node: Node, depth: int) -> Iterator[Any]:
        if node.get("enum"):
            yield from (item for item in node["enum"] if item is not None)
            return
        if node.get("default") is not None:
            yield copy_json(node["default"])
        kinds = admitted_types(node)
        if "object" in kinds:
            yield self.small_object(node, depth)
        if "string" in kinds and len(kinds) > 2:
            yield "a"
        if kinds <= {"integer", "number"} or node.get("x-kubernetes-int-or-string"):
            yield from numbers(node)
        if "string" in kinds and len(kinds) <= 2:
            yield from strings(node)
        if kinds == {"boolean"}:
            yield from (False, True)
        if kinds == {"array"}:
            yield self.small_list(node, int(node.get("minItems") or 0), depth)

    def small_object(self, node: Node, depth: int = 0) -> dict[str, Any]:
        """Return required members without a default, then arbitrary keys up to
        ``minProperties``.
        """
        out: dict[str, Any] = {}
        if node.get("x-kubernetes-embedded-resource"):
            out = {"apiVersion": "v1", "kind": "Thing"}
        properties = node.get("properties") or {}
        if depth > _MAX_DEPTH:
            return out
        for name in node.get("required") or ():
            child = properties.get(name)
            if name in out or (child or {}).get("default") is not None:
                continue
            out[name] = "a" if child is None else self.minimal(child, depth + 1)
        missing = int(node.get("minProperties") or 0) - len(out)
        return {**out, **self.members(node, missing, out, depth)} if missing > 0 else out

    def members(
        self, node: Node, count: int, taken: Mapping[str, Any], depth: int = 0
    ) -> dict[str, Any]:
        """Return ``count`` further members: arbitrary keys where allowed, else optional
        properties.
        """
        free = node.get("additionalProperties")
        if isinstance(free, Mapping):
            value = self.minimal(free, depth + 1)
            return {f"key{number}": copy_json(value) for number in range(min(count, _MOST_ITEMS))}
        if free or node.get("x-kubernetes-preserve-unknown-fields"):
            return {f"key{number}": "a" for number in range(min(count, _MOST_ITEMS))}
        left = [name for name in node.get("properties") or () if name not in taken]
        return {name: self.minimal(node["properties"][name], depth + 1) for name in left[:count]}

    def small_list(self, node: Node, length: int, depth: int = 0) -> list[Any]:
        """Return ``length`` items, distinct if the list requires it."""
        items = node.get("items")
        if length <= 0 or not isinstance(items, Mapping):
            return ["a"] * max(length, 0)
        length = min(length, _MOST_ITEMS)
        kind = node.get("x-kubernetes-list-type")
        if kind == "map":
            keys = node.get("x-kubernetes-list-map-keys") or []
            return self._keyed(items, list(keys), length, depth)
        first = self.minimal(items, depth + 1)
        if kind != "set" and not node.get("uniqueItems"):
            return [copy_json(first) for _ in range(length)]
        return self.distinct(items, length)

    def _keyed(self, items: Node, keys: list[str], length: int, depth: int) -> list[Any]:
        base = self.minimal(items, depth + 1)
        if not isinstance(base, dict) or not keys:
            return [base] * length
        properties = items.get("properties") or {}
        ways = [self.distinct(properties.get(key) or {"type": "string"}, length) for key in keys]
        best = max(range(len(keys)), key=lambda position: len(ways[position]))
        out = []
        for number in range(len(ways[best])):
            item = copy_json(base)
            for position, key in enumerate(keys):
                item[key] = ways[position][number if position == best else 0]
            out.append(item)
        return out

    def distinct(self, node: Node, count: int) -> list[Any]:
        """Return up to ``count`` different valid values."""
        found: list[Any] = []
        for value in islice(self._many(node, count), 4 * count + 40):
            if not any(same_json(value, other) for other in found) and self.fits(node, value):
                found.append(value)
            if len(found) == count:
                break
        return found

    def _many(self, node: Node, count: int) -> Iterator[Any]:
        yield self.minimal(node)
        if node.get("enum"):
            yield from node["enum"]
        elif node.get("type") == "string":
            least = int(node.get("minLength") or 0)
            for number in range(2 * count):
                yield f"a{number}".ljust(least, "a")
            yield from strings(node)
        elif node.get("type") in ("integer", "number"):
            start = math.ceil(node.get("minimum", 0)) + bool(node.get("exclusiveMinimum"))
            yield from range(start, start + 2 * count)
        elif node.get("type") == "object":
            base = self.minimal(node)
            for name, child in (node.get("properties") or {}).items():
                for value in islice(self._many(child, count), count + 1):
                    yield {**base, name: value}


def branches(node: Node) -> Iterator[Node]:
    """Yield the node with one branch of each combinator merged into it."""
    base = dict(node)
    for part in base.pop("allOf", None) or ():
        base = _merged(base, part)
    choices = [*(base.pop("anyOf", None) or ()), *(base.pop("oneOf", None) or ())]
    if base != node:
        yield base
    for part in choices:
        if isinstance(part, Mapping):
            yield _merged(base, part)


def _merged(node: Node, part: Node) -> dict[str, Any]:
    out = dict(node)
    for name, value in part.items():
        if name in _UNION_KEYWORDS:
            out[name] = [
                *out.get(name, ()),
                *(item for item in value if item not in out.get(name, ())),
            ]
        elif name == "properties":
            known = dict(out.get("properties") or {})
            for key, child in value.items():
                known[key] = _merged(known.get(key) or {}, child)
            out["properties"] = known
        elif name in ("items", "additionalProperties") and isinstance(value, Mapping):
            inner = out.get(name)
            out[name] = _merged(inner if isinstance(inner, Mapping) else {}, value)
        elif name != "not":
            out[name] = value
    return out


def strings(node: Node) -> Iterator[str]:
    least = int(node.get("minLength") or 0)
    written = str(node.get("format") or "")
    yield from FORMAT_TEXTS.get(canonical(written), ())
    if node.get("pattern"):
        yield from matching(str(node["pattern"]))
        yield from matching(str(node["pattern"]), least=least) if least else ()
        return
    yield text_of_length(max(least, 1))
    yield from (text.ljust(least, "a") for text in ("", "b", "0", "A", "a.b", "a-b", "/a"))


def numbers(node: Node) -> Iterator[float]:
    step = node.get("multipleOf") or 1
    low, high = node.get("minimum"), node.get("maximum")
    whole = "number" not in admitted_types(node)
    first = 0 if low is None else math.ceil(low) if whole else low
    if low is not None and node.get("exclusiveMinimum"):
        first += step
    if low is None and high is not None and high <= 0:
        first = math.floor(high) - (step if node.get("exclusiveMaximum") else 0)
    for start in (0, first, math.ceil(first / step) * step, (math.floor(first / step) + 1) * step):
        for value in (start, start + step):
            yield int(value) if whole and float(value).is_integer() else value


def without_member(obj: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key != name}
