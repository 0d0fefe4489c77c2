"""Builds example objects that contain a given value and are otherwise as small as the schema
allows.

``search.py`` puts candidate values into objects with it. The module also finds the part of an
object and of a schema that the field of a validation error names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from instar.base.json_values import copy_json
from instar.kube.schema.json_types import ABSENT
from instar.tools.reviewer.changes import Steps
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.witnesses.samples import Samples

Node = Mapping[str, Any]

KEY = "key"
NAME = "witness"
_NAME_STEPS = ("properties", "metadata", "properties", "name")
_TOKEN = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def node_at(schema: Node, steps: Steps) -> Node | None:
    """Return the schema node at ``steps``; None if the schema has none there."""
    node: Any = schema
    for step in steps:
        node = node.get(step) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else None


def concrete_path(steps: Steps) -> str:
    """Return the path at which ``place`` puts the value, in the notation of errors and pruning."""
    path, position = "", 0
    while position < len(steps):
        word = steps[position]
        if word == "properties":
            position += 1
            path += f".{steps[position]}"
        elif word == "items":
            path += "[0]"
        else:
            path += f".{KEY}"
        position += 1
    return path.removeprefix(".")


def whole_object(
    samples: Samples, side: ReviewedCrd, version: str, schema: Node, steps: Steps, value: Any
) -> Any:
    """Return an object of this version with ``value`` at ``steps``; ABSENT omits the member."""
    body = _place(samples, schema, steps, value)
    if not isinstance(body, dict):
        return body
    body = {name: item for name, item in body.items() if name not in ("apiVersion", "kind")}
    metadata = body.pop("metadata", None)
    head: dict[str, Any] = {
        "apiVersion": f"{side.crd.group}/{version}",
        "kind": side.crd.names.kind,
        "metadata": {"name": NAME},
    }
    if isinstance(metadata, dict):
        head["metadata"] |= metadata
    if steps != _NAME_STEPS or not isinstance(value, str):
        head["metadata"]["name"] = _name(samples, schema)
    if side.crd.namespaced:
        head["metadata"]["namespace"] = "default"
    return {**head, **body}


def _name(samples: Samples, schema: Node) -> str:
    node = node_at(schema, _NAME_STEPS)
    if node is None or samples.fits(node, NAME):
        return NAME
    return str(samples.minimal(node))


def _place(samples: Samples, node: Node, steps: Steps, value: Any) -> Any:
    if not steps:
        return copy_json(value)
    if steps[0] == "properties":
        name, rest = steps[1], steps[2:]
        base = _small(samples, node)
        child = (node.get("properties") or {}).get(name) or {}
        if value is ABSENT and not rest:
            base.pop(name, None)
        else:
            base[name] = _place(samples, child, rest, value)
        return base
    inner = node.get(steps[0])
    child = inner if isinstance(inner, Mapping) else {}
    if steps[0] == "items":
        least = max(int(node.get("minItems") or 0), 1)
        items = samples.small_list(node, least) or [None]
        items[0] = _place(samples, child, steps[1:], value)
        return items
    return {**_small(samples, node), KEY: _place(samples, child, steps[1:], value)}


def _small(samples: Samples, node: Node) -> dict[str, Any]:
    found = (
        samples.minimal(node)
        if node.get("anyOf") or node.get("oneOf")
        else samples.small_object(node)
    )
    return dict(found) if isinstance(found, dict) else {}


def tokens(field: str) -> list[str | int]:
    """Split ``spec.rules[0].x`` into keys and positions."""
    found: list[str | int] = []
    for bracket, name in _TOKEN.findall(field):
        text = bracket or name
        found.append(int(text) if bracket and text.isdecimal() else text)
    return found


def look_up(schema: Node, obj: Any, field: str) -> tuple[list[str | int], Node, Any]:
    """Return tokens, schema and value of the deepest existing place on the path ``field``."""
    node: Node = schema
    value, walked = obj, list[str | int]()
    for token in tokens(field):
        if isinstance(value, dict) and token in value:
            properties = node.get("properties") or {}
            child = properties.get(token, node.get("additionalProperties"))
            value = value[token]
        elif isinstance(value, list) and isinstance(token, int) and token < len(value):
            child, value = node.get("items"), value[token]
        else:
            break
        node = child if isinstance(child, Mapping) else {}
        walked.append(token)
    return walked, node, value


def with_value(obj: Any, where: list[str | int], value: Any) -> Any:
    """Return a copy with ``value`` at the place; ABSENT removes a member."""
    copy = copy_json(obj)
    if not where:
        return copy_json(value)
    holder = copy
    for token in where[:-1]:
        holder = holder[token]
    if value is ABSENT:
        if isinstance(holder, dict):
            holder.pop(where[-1], None)
    else:
        holder[where[-1]] = copy_json(value)
    return copy
