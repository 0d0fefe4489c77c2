"""Makes CRD schemas that are costly for small objects, and objects for them; the fuzzer can use
both. Everything is drawn from a ``Random``, so that a seed repeats it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Schema = dict[str, Any]
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, **ANYTHING}


def hostile_schema(random: Random) -> Schema:
    return random.choice(_FAMILIES)(random, random.choice([50, 300, 2000]))


def hostile_value(random: Random, schema: Schema, depth: int = 0) -> Any:
    """A value that mostly has the schema's types, and mostly breaks its rules."""
    if random.random() < 0.05:
        return random.choice([None, 1, "x", [], {}, True, 1e300])
    match schema.get("type"):
        case "array":
            count = random.choice([1, 5, 30, 300]) if depth < 2 else 3
            return [hostile_value(random, schema["items"], depth + 1) for _ in range(count)]
        case "object":
            return _object(random, schema, depth)
        case "integer":
            return random.choice([0, 1, -5, 10**9])
        case "string":
            return random.choice(["", "x" * 30, "ab" * 40, "v3"])
    return random.choice([0, "abab", [1] * 20, {"a": 1}, {f"p{n}": n for n in range(30)}])


def _object(random: Random, schema: Schema, depth: int) -> Any:
    found: dict[str, Any] = {}
    properties = schema.get("properties", {})
    for name in list(properties)[: random.choice([1, 40, 500])]:
        found[name] = hostile_value(random, properties[name], depth + 1)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for number in range(random.choice([3, 100, 400])):
            found[f"k{number}"] = hostile_value(random, others, depth + 1)
    if "x-kubernetes-embedded-resource" in schema:
        found |= {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}
    return found


def _leaf(random: Random, n: int) -> Schema:
    return random.choice(
        [
            {"minimum": n},
            {"multipleOf": n + 1},
            {"enum": [n]},
            {"minLength": n % 50},
            {"pattern": f"^a{n}(b|c)*d$"},
            {"required": [f"p{n}"]},
            {"maxItems": n % 7},
            {"not": {"minimum": -n}},
        ]
    )


def _branches(random: Random, count: int) -> list[Schema]:
    return [_leaf(random, n) for n in range(count)]


def _alternatives(random: Random, count: int) -> Schema:
    return {"type": "array", "items": {**ANYTHING, "anyOf": _branches(random, count)}}


def _members(random: Random, count: int) -> Schema:
    rules = {"type": "integer", "allOf": _branches(random, count)}
    return {"type": "object", "additionalProperties": rules}


def _defaults(random: Random, count: int) -> Schema:
    member = {"type": "string", "default": "x" * random.randrange(40)}
    return {"type": "object", "properties": {f"p{n}": member for n in range(count)}}


def _deep(random: Random, count: int) -> Schema:
    schema: Schema = {"type": "string", "enum": [f"v{n}" for n in range(count * 10)]}
    for _ in range(random.randrange(60)):
        schema = {"type": "object", "properties": {"a": schema}, "default": {}}
    return schema


def _powers(random: Random, count: int) -> Schema:
    depth, width = random.choice([(2, 60), (3, 14), (5, 5)])
    schema: Schema = {"minimum": 1}
    for _ in range(depth):
        schema = {random.choice(["anyOf", "allOf", "oneOf"]): [schema] * width}
    return {"type": "integer", **schema}


def _keys(random: Random, count: int) -> Schema:
    names = [f"k{n}" for n in range(40)]
    members = {name: {"type": "string", "default": "z"} for name in names}
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": names,
        "items": {"type": "object", "required": names, "properties": members},
    }


def _rules(random: Random, count: int) -> Schema:
    rules = [{"rule": f"self.a != 'x{n}'"} for n in range(60)]
    member = {"a": {"type": "string", "maxLength": 100}}
    items = {"type": "object", "properties": member, "x-kubernetes-validations": rules}
    return {"type": "array", "maxItems": 200, "items": items}


def _patterns(random: Random, count: int) -> Schema:
    rules = [{"pattern": f"^(a|b|ab)*{n}c?$"} for n in range(count // 4)]
    return {"type": "string", "allOf": rules}


def _embedded(random: Random, count: int) -> Schema:
    rules = [{"required": [f"z{n}"]} for n in range(count // 2)]
    return {"type": "array", "items": {**EMBEDDED, "anyOf": rules}}


def _lists(random: Random, count: int) -> Schema:
    schema: Schema = {**ANYTHING, "anyOf": _branches(random, count // 8)}
    for _ in range(3):
        schema = {"type": "array", "items": schema}
    return schema


def _negated(random: Random, count: int) -> Schema:
    members = {"anyOf": _branches(random, 8)}
    branches = [{"properties": {f"p{n % 5}": members}} for n in range(count // 10)]
    return {"type": "object", "not": {"anyOf": branches}, **ANYTHING}


_FAMILIES: list[Callable[[Random, int], Schema]] = [
    _alternatives,
    _members,
    _defaults,
    _deep,
    _powers,
    _keys,
    _rules,
    _patterns,
    _embedded,
    _lists,
    _negated,
]
