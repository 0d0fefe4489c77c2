"""Compiler from a schema's CEL rules to a tree of runnable rules (``RuleNode``).

Called by ``check.py`` (at CRD write) and ``evaluate.py``. Each pair of rule text and type of
``self`` is compiled once per process, however many CRDs, versions and fields share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NoReturn

from instar.base.fast_dataclass import dataclass
from instar.base.weighted_lru import WeightedLru
from instar.kube.cel.checking.cost_estimate import estimate
from instar.kube.cel.declared_types import Declared, sizes_of
from instar.kube.cel.engine import BadExpression, BadProgram, CelRunner, analyse, prepare
from instar.kube.cel.syntax.property_names import escape
from instar.kube.cel.types import BOOL, STRING, optional_of
from instar.kube.schema.cel_rules.declare import can_declare, declare
from instar.kube.schema.structure.field_path import PathProblem, resolve
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural, ValidationRule

_MAX_CACHE_WEIGHT = 200_000
"""Weight limit of the compiled rules that are kept, in schema nodes of the types of ``self``; a
large CRD has some hundreds of rules, most of them on types of a few nodes."""


_CHARACTERS_OF_A_PLACE = 10
"""Characters of an expression that weigh as much as one schema node."""
_ANY_RULE, _ANY_TYPE = 50, 10
"""Minimum weights: 10 kB of closures for a rule, 2 kB of declarations for a type."""

Run = Callable[[Sequence[Any], int, float], tuple[Any, int]]


def _nothing_to_run(_values: Sequence[Any], _limit: int, _deadline: float) -> NoReturn:
    raise AssertionError("a rule that does not compile is not run")


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """One expression of a rule. Without a ``runner`` it did not compile; ``problem`` is the
    reason."""

    uses_self: bool = False
    uses_old: bool = False
    cost: int = 0
    runner: CelRunner | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """A rule with its compiled condition and message expression."""

    rule: ValidationRule
    condition: CompiledExpression
    message: CompiledExpression | None
    """None if there is no messageExpression or the rule itself does not compile."""
    field_path: str = ""
    """Path below the rule's node, as errors write it."""
    simple: bool = False
    """True if it compiles and uses only the present value."""
    run: Run = _nothing_to_run
    """Runs the condition."""


@dataclass(slots=True, eq=False)
class RuleNode:
    """A schema node with rules on it or below it; other nodes are skipped."""

    schema: Structural
    declared: Declared | None = None
    """The type of ``self``; None if there is no rule or the node has no CEL type."""
    rules: tuple[CompiledRule, ...] = ()
    fields: dict[str, RuleNode] = field(default_factory=dict)
    element: RuleNode | None = None
    """Rules of a list's items or a map's values."""
    branches: tuple[RuleNode, ...] = ()
    """Rules inside ``allOf``, on the same value."""

    def idle(self) -> bool:
        return not (self.rules or self.fields or self.element or self.branches)


class TypeKey:
    """The type of ``self`` by content: equal keys declare equal types. Hashed once."""

    __slots__ = ("_hash", "content", "node", "root", "weight")

    def __init__(self, content: tuple[Any, ...], node: Structural, root: bool) -> None:
        self.content = content
        self.node = node
        self.root = root
        self._hash = hash(content)
        self.weight = _weight(content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeKey) and self.content == other.content


def build(node: Structural, *, root: bool) -> RuleNode | None:
    """Return the tree of rules below a node; None if there are none. ``root``: a whole resource."""
    return _build(node, node, root=root)


def _build(rules_of: Structural, node: Structural, *, root: bool) -> RuleNode | None:
    """Build a node; ``rules_of`` has the rules, ``node`` the types, which differ inside
    ``allOf``."""
    out = RuleNode(node, fields=_fields(rules_of, node))
    for inner, of in ((rules_of.items, node.items), (rules_of.additional, node.additional)):
        if isinstance(inner, Structural) and isinstance(of, Structural):
            out.element = _build(inner, of, root=of.embedded)
    branches = (_build(branch, node, root=root) for branch in _branches(rules_of))
    out.branches = tuple(branch for branch in branches if branch is not None)
    if rules_of.rules:
        key = type_key(node, root=root)
        out.declared = declaration_of(key)
        out.rules = tuple(compile_rule(rule, key) for rule in rules_of.rules if rule.rule.strip())
    return None if out.idle() else out


def _fields(rules_of: Structural, node: Structural) -> dict[str, RuleNode]:
    """Build the properties that have a CEL type; rules below others do not run."""
    found: dict[str, RuleNode] = {}
    for name, inner in rules_of.properties.items():
        of = node.properties.get(name)
        if of is None or not can_declare(of) or (escape(name) and not can_declare(node)):
            continue
        below = _build(inner, of, root=of.embedded)
        if below is not None:
            found[name] = below
    return found


def _branches(node: Structural) -> Iterator[Structural]:
    found = node.raw.get("allOf")
    for branch in found if isinstance(found, list) else ():
        if isinstance(branch, Mapping):
            yield structural(branch)


def type_key(node: Structural, *, root: bool) -> TypeKey:
    """Return the cache key of the CEL type of a schema node."""
    return TypeKey((root, *_content(node)), node, root)


def compile_rule(rule: ValidationRule, key: TypeKey) -> CompiledRule:
    """Compile a rule and its ``messageExpression``; errors are kept in the result."""
    if not rule.rule.strip():
        return CompiledRule(rule, CompiledExpression(), None)
    optional = rule.optional_old_self is True
    condition = _compile(rule.rule, key, optional, False)
    message = None
    if rule.message_expression and condition.runner is not None:
        message = _compile(rule.message_expression, key, optional, True)
    path = _normal_path(rule.field_path, key.node)
    if condition.runner is None:
        return CompiledRule(rule, condition, message, path)
    simple = not condition.uses_old
    return CompiledRule(rule, condition, message, path, simple, condition.runner.run)


def _normal_path(path: str, node: Structural) -> str:
    """Return the normalised fieldPath; empty if it does not resolve (such a CRD is rejected)."""
    try:
        return resolve(path, node.raw).normal if path else ""
    except PathProblem:
        return ""


@dataclass(frozen=True, slots=True)
class _Declaration:
    """Cache entry, so that None can be cached."""

    declared: Declared | None


_DECLARED: WeightedLru[TypeKey, _Declaration] = WeightedLru(_MAX_CACHE_WEIGHT)
_COMPILED: WeightedLru[tuple[str, TypeKey, bool, bool], CompiledExpression] = WeightedLru(
    _MAX_CACHE_WEIGHT
)


def declaration_of(key: TypeKey) -> Declared | None:
    """Return the CEL type of a node, from the cache if it is known."""
    found = _DECLARED.get(key)
    if found is None:
        found = _Declaration(declare(key.node, root=key.root))
        _DECLARED.put(key, found, _ANY_TYPE + key.weight)
    return found.declared


def _compile(source: str, key: TypeKey, optional: bool, message: bool) -> CompiledExpression:
    place = (source, key, optional, message)
    found = _COMPILED.get(place)
    if found is not None:
        return found
    weight = _ANY_RULE + key.weight + len(source) // _CHARACTERS_OF_A_PLACE
    return _COMPILED.put(place, _compile_uncached(source, key, optional, message), weight)


def _compile_uncached(
    source: str, key: TypeKey, optional: bool, message: bool
) -> CompiledExpression:
    """Compile an expression: a rule must be a bool, a message a string; their errors differ in
    wording."""
    declared = declaration_of(key)
    if declared is None:
        return CompiledExpression(problem="unable to convert structural schema to CEL declarations")
    subject, program = ("messageExpression ", "messageExpression") if message else ("", "program")
    old = optional_of(declared.type) if optional else declared.type
    try:
        checked = analyse(source, {"self": declared.type, "oldSelf": old})
    except BadExpression as error:
        return CompiledExpression(problem=f"{subject}compilation failed: {error}")
    if checked.type != (STRING if message else BOOL):
        wanted = "messageExpression must evaluate to a string"
        return CompiledExpression(
            problem=wanted if message else "cel expression must evaluate to a bool"
        )
    uses_old = "oldSelf" in checked.variables
    try:
        runner = prepare(checked, ("self", "oldSelf"))
    except BadProgram as error:
        return CompiledExpression(
            uses_old=uses_old, problem=f"{program} instantiation failed: {error}"
        )
    cost = estimate(checked, sizes_of(declared)).high
    return CompiledExpression("self" in checked.variables, uses_old, cost, runner)


def _weight(content: tuple[Any, ...]) -> int:
    """Return about how many schema nodes a type has."""
    found, waiting = 1, [content]
    while waiting:
        inner = [item for item in waiting.pop() if type(item) is tuple]
        found += len(inner)
        waiting += inner
    return found


def _content(node: Structural) -> tuple[Any, ...]:
    """Return everything of a node that its CEL declaration or its size limits depend on."""
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
        bool(raw.get("enum")),
        tuple(item for item in raw.get("enum") or () if isinstance(item, str)),
        tuple(_members(node)),
        _content(inner) if isinstance(inner, Structural) else None,
    )


def _members(node: Structural) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, item in node.properties.items():
        yield name, _content(item)
