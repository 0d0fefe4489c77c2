"""Coverage of a CRD by its test cases: properties, enum values, bounds, rules, conversions. Pure.

Called by ``session.py`` with ``--coverage``. A property or enum value is covered when a case sends
it, a bound or rule when a case sends a value that it rejects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json, is_among
from instar.kube.api.crd import Crd, CrdVersion
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.pipeline import pipeline_of

_BOUNDS = (
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)
_WITH = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
_RULES = "x-kubernetes-validations"
_COMMON_FIELDS = ("apiVersion", "kind", "metadata")
_WITHOUT_REFUSAL = ("int32", "int64", "float", "double", "password")
"""Formats that reject nothing."""


class Item(NamedTuple):
    """One part of a CRD that can be covered."""

    version: str
    path: str
    what: str
    """``property``, ``enum red``, ``minimum 5``, ``required name``, ``rule …``, ``to v2``."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.version, self.path, self.what)))


@dataclass(frozen=True, slots=True)
class CaseStep:
    """One write of a case: the object sent, and the one before."""

    version: str
    new: Object
    old: Object | None = None


@dataclass(slots=True)
class Coverage:
    """Which bounds and rules of a CRD the cases of a suite violate."""

    items: dict[Item, bool]

    @property
    def missing(self) -> list[Item]:
        return [item for item, exercised in self.items.items() if not exercised]

    @property
    def percent(self) -> float:
        done = sum(self.items.values())
        return 100.0 * done / len(self.items) if self.items else 100.0


def compute_coverage(
    crd: Crd, steps: Sequence[CaseStep], conversions: Iterable[tuple[str, str]]
) -> Coverage:
    """Compute the coverage; ``conversions`` are the (from, to) pairs of the cases."""
    items: dict[Item, bool] = {}
    for version in crd.versions:
        if version.schema is None or not version.served:
            continue
        sent = [step for step in steps if step.version == version.name]
        walk = _Walk(version.name, items)
        walk.declare(version.schema, "")
        for step in sent:
            walk.visit(version.schema, step.new, "")
        items.update(_rules(crd, version, sent))
    asked = set(conversions)
    served = [version.name for version in crd.versions if version.served]
    for source in served:
        for target in served:
            if source != target:
                items[Item(source, "", f"to {target}")] = (source, target) in asked
    return Coverage(items)


class _Walk:
    """Visits schema and values: declares items, and marks those that a value covers."""

    def __init__(self, version: str, items: dict[Item, bool]) -> None:
        self._version = version
        self._items = items

    def declare(self, node: Mapping[str, Any], path: str) -> None:
        for what in _declared(node):
            self._items.setdefault(Item(self._version, path, what), False)
        for name, below in _properties(node, path).items():
            where = f"{path}.{name}" if path else name
            self._items.setdefault(Item(self._version, where, "property"), False)
            self.declare(below, where)
        for mark, below in _inside(node):
            self.declare(below, path + mark)

    def visit(self, node: Mapping[str, Any], value: Any, path: str) -> None:
        for what in _exercised(node, value):
            self._tick(path, what)
        if isinstance(value, dict):
            for name, below in _properties(node, path).items():
                if name in value:
                    where = f"{path}.{name}" if path else name
                    self._tick(where, "property")
                    self.visit(below, value[name], where)
        children = value.values() if isinstance(value, dict) else value
        for mark, below in _inside(node):
            if isinstance(value, dict if mark == "{}" else list):
                for child in children:
                    self.visit(below, child, path + mark)

    def _tick(self, path: str, what: str) -> None:
        item = Item(self._version, path, what)
        if item in self._items:
            self._items[item] = True


def _properties(node: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    found = node.get("properties") or {}
    return found if path else {name: found[name] for name in found if name not in _COMMON_FIELDS}


def _inside(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(node.get("items"), dict):
        yield "[]", node["items"]
    if isinstance(node.get("additionalProperties"), dict):
        yield "{}", node["additionalProperties"]


def _declared(node: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"enum {value}" for value in node.get("enum") or ())
    yield from (f"{name} {node[name]}" for name in _bounds(node))
    yield from (f"required {name}" for name in node.get("required") or ())


def _bounds(node: Mapping[str, Any]) -> Iterator[str]:
    for name in _BOUNDS:
        if name in node and node[name] is not False and node[name] not in _WITHOUT_REFUSAL:
            yield name


def _exercised(node: Mapping[str, Any], value: Any) -> Iterator[str]:
    if is_among(value, node.get("enum") or ()):
        yield f"enum {value}"
    for name in _bounds(node):
        bound = {n: node[n] for n in (name, _WITH.get(name, name)) if n in node}
        if _refuses({"type": node.get("type", ""), **bound}, value):
            yield f"{name} {node[name]}"
    if isinstance(value, dict):
        yield from (f"required {name}" for name in node.get("required") or () if name not in value)


def _refuses(schema: Mapping[str, Any], value: Any) -> bool:
    wrapped = {"type": "object", "properties": {"value": schema}}
    return bool(compile_schema(wrapped).validate({"value": value}))


def _rules(crd: Crd, version: CrdVersion, steps: Sequence[CaseStep]) -> Iterator[tuple[Item, bool]]:
    """Evaluate each rule separately, to know which one rejects."""
    assert version.schema is not None
    for path, pointer, position, rule in _placed_rules(version.schema, "", ()):
        schema = _with_one_rule(version.schema, pointer, position)
        pipeline = pipeline_of(crd, replace(version, schema=schema))
        exercised = any(_fails(pipeline, step) for step in steps)
        yield Item(version.name, path, f"rule {rule}"), exercised


def _fails(pipeline: Any, step: CaseStep) -> bool:
    new, old = copy_json(step.new), copy_json(step.old)
    try:
        pipeline.decode(new)
        if old is not None:
            pipeline.decode(old)
    except MetaError:
        return False
    return pipeline.rules is not None and bool(pipeline.rules.evaluate(new, old).errors)


_Pointer = tuple[str, ...]


def _placed_rules(
    node: Mapping[str, Any], path: str, pointer: _Pointer
) -> Iterator[tuple[str, _Pointer, int, str]]:
    for position, rule in enumerate(node.get(_RULES) or ()):
        yield path, pointer, position, str(rule.get("rule", ""))
    for name, below in (node.get("properties") or {}).items():
        where = f"{path}.{name}" if path else name
        yield from _placed_rules(below, where, (*pointer, "properties", name))
    for mark, below in _inside(node):
        member = "items" if mark == "[]" else "additionalProperties"
        yield from _placed_rules(below, path + mark, (*pointer, member))


def _with_one_rule(schema: Mapping[str, Any], pointer: _Pointer, position: int) -> Object:
    copy: Object = copy_json(schema)
    _strip_rules(copy)
    node, source = copy, schema
    for token in pointer:
        node, source = node[token], source[token]
    node[_RULES] = [source[_RULES][position]]
    return copy


def _strip_rules(node: Object) -> None:
    node.pop(_RULES, None)
    for below in (node.get("properties") or {}).values():
        _strip_rules(below)
    for _, inside in _inside(node):
        _strip_rules(inside if isinstance(inside, dict) else dict(inside))
