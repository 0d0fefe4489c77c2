"""A small object that a structural schema accepts, the same every time.

Only what real CRDs demand is known: required fields, enums, bounds, patterns by a list of
candidates, and the first branch of anyOf/oneOf that asks for fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from instar.base.json_values import Object

_CANDIDATES = (
    "a",
    "example.com",
    "a.example.com/b",
    "example.com/a",
    "https://example.com",
    "https://example.com/a.git",
    "oci://example.com/a",
    "http://example.com/a",
    "1h0m0s",
    "1m",
    "sha256:" + "a" * 64,
    "latest@sha256:" + "a" * 64,
    "a/b@sha256:" + "a" * 64,
    "1.2.3",
    "10.0.0.1",
    "0",
    "1",
    "*.example.com",
    "/a",
    "/",
    "A",
    "Aa",
    "",
)
_FORMATS = {"date-time": "2024-01-01T00:00:00Z", "duration": "1h", "ipv4": "10.0.0.1"}


def minimal(schema: Object) -> Any:
    """A value for the schema; raises ``ValueError`` naming what could not be met."""
    schema = _merged(schema)
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    make = _BY_TYPE.get(schema.get("type", "object"))
    if make is None:
        raise ValueError(f"a type that is not known: {schema.get('type')}")
    return make(schema)


def generous(schema: Object) -> Object:
    """Like ``minimal``, with every optional field of the object and of its ``spec`` set too.

    Rules across fields may forbid some of that, so callers ask the server first.
    """
    made: Object = minimal(schema)
    spec = schema.get("properties", {}).get("spec", {})
    full = {name: minimal(inner) for name, inner in spec.get("properties", {}).items()}
    return {**made, "spec": full} if full else made


def _merged(schema: Object) -> Object:
    """The schema with the demands of allOf and of one branch of anyOf and oneOf taken in."""
    branches = [*schema.get("allOf", ())]
    for word in ("anyOf", "oneOf"):
        options = [item for item in schema.get(word, ()) if item]
        branches += options[:1]
    merged = dict(schema)
    for branch in branches:
        inner = _merged(branch)
        merged["required"] = [*merged.get("required", ()), *inner.get("required", ())]
        properties = dict(merged.get("properties", {}))
        for name, extra in inner.get("properties", {}).items():
            properties[name] = {**properties.get(name, {}), **extra}
        merged["properties"] = properties
        for word in ("pattern", "enum", "format", "minLength", "minimum", "minItems"):
            if word in inner:
                merged.setdefault(word, inner[word])
    return merged


def _object(schema: Object) -> Object:
    properties = schema.get("properties", {})
    made = {name: minimal(properties.get(name, {})) for name in schema.get("required", ())}
    extra = schema.get("additionalProperties")
    for number in range(schema.get("minProperties", 0) - len(made)):
        spare = sorted(set(properties) - set(made))
        if spare:
            made[spare[0]] = minimal(properties[spare[0]])
        else:
            made[f"key{number}"] = minimal(extra) if isinstance(extra, dict) else "a"
    return made


def _array(schema: Object) -> list[Any]:
    return [minimal(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]


def _string(schema: Object) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if schema.get("format") == "byte":
        return "YQ=="
    pattern, least = schema.get("pattern"), schema.get("minLength", 0)
    for text in _CANDIDATES:
        padded = text if len(text) >= least else text + "a" * (least - len(text))
        if pattern is None or re.search(pattern, padded):
            return padded
    raise ValueError(f"no text is known for {pattern}")


def _number(schema: Object) -> int:
    least = schema.get("minimum", 0)
    return int(least) + (1 if schema.get("exclusiveMinimum") else 0)


_BY_TYPE: dict[str, Callable[[Object], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _number,
    "number": _number,
    "boolean": lambda schema: False,
}
