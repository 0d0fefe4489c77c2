"""Rules to programs. Each pair of rule text and type of ``self`` is compiled once per process,
however many CRDs, versions and places share it; an unchanged CRD compiles nothing again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from instar.cel.cost import estimate, shape_of
from instar.cel.declared import Declared
from instar.cel.engine import BadExpression, BadProgram, Runner, analyse, prepare
from instar.cel.types import Type, optional_of
from instar.schema.structural import Structural, ValidationRule
from instar.schema.validations.declare import declare

_REMEMBERED = 8192
"""Expressions kept compiled; a large CRD has some hundreds."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One expression of a rule. Without a ``runner`` it did not compile; ``error`` says why."""

    type: Type | None = None
    uses_old: bool = False
    cost: float = 0
    runner: Runner | None = None
    error: str = ""
    well_typed: bool = False
    """Without a runner: it compiled, and failed only when the program was built."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    rule: ValidationRule
    condition: Compiled
    message: Compiled | None


@dataclass(slots=True, eq=False)
class RuleNode:
    """A place with rules on it or below it; everything else is left out of the walk."""

    schema: Structural
    declared: Declared | None
    rules: tuple[CompiledRule, ...]
    fields: dict[str, RuleNode] = field(default_factory=dict)
    element: RuleNode | None = None
    """Of a list's items or a map's values."""


class TypeKey:
    """The type of ``self`` by content: equal keys declare equal types. Hashed once."""

    __slots__ = ("_hash", "content", "node", "root")

    def __init__(self, content: tuple[Any, ...], node: Structural, root: bool) -> None:
        self.content = content
        self.node = node
        self.root = root
        self._hash = hash(content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeKey) and self.content == other.content


def build(node: Structural, *, root: bool) -> RuleNode | None:
    """The tree of rules below a node; None when there is none. ``root``: a whole resource."""
    fields = {
        name: child
        for name, item in node.properties.items()
        if (child := build(item, root=False)) is not None
    }
    inner = node.items if node.items is not None else node.additional
    element = build(inner, root=False) if isinstance(inner, Structural) else None
    if not (fields or element or node.rules):
        return None
    if not node.rules:
        return RuleNode(node, None, (), fields, element)
    key = type_key(node, root=root)
    rules = tuple(compile_rule(rule, key) for rule in node.rules if rule.rule.strip())
    return RuleNode(node, _declared(key), rules, fields, element)


def type_key(node: Structural, *, root: bool) -> TypeKey:
    return TypeKey((root, *_content(node)), node, root)


def compile_rule(rule: ValidationRule, key: TypeKey) -> CompiledRule:
    optional = rule.optional_old_self is True
    message = rule.message_expression
    return CompiledRule(
        rule,
        _compile(rule.rule, key, optional),
        _compile(message, key, optional) if message.strip() else None,
    )


def can_declare(key: TypeKey) -> bool:
    return _declared(key) is not None


@lru_cache(maxsize=_REMEMBERED)
def _declared(key: TypeKey) -> Declared | None:
    return declare(key.node, root=key.root)


@lru_cache(maxsize=_REMEMBERED)
def _compile(source: str, key: TypeKey, optional: bool) -> Compiled:
    declared = _declared(key)
    if declared is None:
        return Compiled(error="unable to convert structural schema to CEL declarations")
    old = optional_of(declared.type) if optional else declared.type
    try:
        checked = analyse(source, {"self": declared.type, "oldSelf": old})
    except BadExpression as error:
        return Compiled(error=str(error))
    try:
        runner = prepare(checked, ("self", "oldSelf"))
    except BadProgram as error:
        return Compiled(error=str(error), well_typed=True)
    shape = shape_of(declared)
    return Compiled(
        type=checked.type,
        uses_old="oldSelf" in checked.variables,
        cost=estimate(checked, {"self": shape, "oldSelf": shape}),
        runner=runner,
    )


def _content(node: Structural) -> tuple[Any, ...]:
    """Everything about a node that its declaration or its sizes depend on."""
    raw = node.raw
    inner = node.items if node.items is not None else node.additional
    return (
        node.type,
        node.nullable,
        node.int_or_string,
        node.embedded,
        node.list_type,
        node.list_map_keys,
        node.default is None,
        raw.get("format"),
        raw.get("maxLength"),
        raw.get("maxItems"),
        raw.get("maxProperties"),
        tuple(raw.get("required") or ()),
        tuple(item for item in raw.get("enum") or () if isinstance(item, str)),
        tuple(_members(node)),
        _content(inner) if isinstance(inner, Structural) else None,
    )


def _members(node: Structural) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, item in node.properties.items():
        yield name, _content(item)
