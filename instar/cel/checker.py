"""Type checking with declared types. Collects every issue; the caller decides what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from instar.cel.ast import (
    Bind,
    Call,
    Comprehension,
    Const,
    Ident,
    ListLiteral,
    Macro,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    qualified_name,
)
from instar.cel.functions import Library, Overload
from instar.cel.issues import BadExpression, Issue
from instar.cel.literals import literal_issue
from instar.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Kind,
    Substitution,
    Type,
    is_optional,
    list_of,
    map_of,
    more_general,
    optional_of,
    type_of,
)
from instar.cel.values import Uint

MAX_DEPTH = 150
"""Levels of a tree; ``a+a+…`` nests without parentheses."""


class TooDeep(Exception):
    """The tree has more levels than the stack should have frames."""


@dataclass(slots=True, eq=False)
class Checked:
    """A tree with its types. Keys are ``id(node)``; the tree keeps the nodes alive."""

    tree: Node
    type: Type
    types: dict[int, Type]
    calls: dict[int, tuple[Overload, ...]]
    type_names: dict[int, str]
    """Nodes that name a type, such as ``int`` or ``net.IP``."""
    namespaced: set[int] = field(default_factory=set)
    """Calls whose target is part of the function's name: ``sets.contains(…)``."""
    variables: set[str] = field(default_factory=set)
    """Declared variables the expression reads."""

    def operands(self, node: Call) -> list[Node]:
        """What a call is applied to, receiver first."""
        if node.target is None or id(node) in self.namespaced:
            return node.args
        return [node.target, *node.args]


def check(source: str, tree: Node, variables: Mapping[str, Type], library: Library) -> Checked:
    checker = _Checker(tree, variables, library)
    found = checker.visit(tree)
    if checker.issues:
        raise BadExpression(source, checker.issues)
    return checker.finish(found)


class _Checker:
    def __init__(self, tree: Node, variables: Mapping[str, Type], library: Library) -> None:
        self.issues: list[Issue] = []
        self._library = library
        self._types = Substitution()
        self._globals = variables
        self._scopes: list[dict[str, Type]] = []
        self._depth = 0
        self._out = Checked(tree, DYN, {}, {}, {})

    def finish(self, result: Type) -> Checked:
        apply = self._types.apply
        out = self._out
        out.type = apply(result, free_to_dyn=True)
        out.types = {key: apply(each, free_to_dyn=True) for key, each in out.types.items()}
        return out

    def visit(self, node: Node) -> Type:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooDeep
        match node:
            case Const():
                found = _constant(node)
            case Ident():
                found = self._ident(node)
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListLiteral():
                found = self._list(node)
            case MapLiteral():
                found = self._map(node)
            case Comprehension():
                found = self._comprehension(node)
            case Bind():
                found = self._bind(node)
            case StructLiteral():
                found = self._fail(node.pos, _undeclared(node.name))
        self._depth -= 1
        self._out.types[id(node)] = found
        return found

    def _fail(self, pos: int, text: str) -> Type:
        self.issues.append(Issue(pos, text))
        return ERROR

    def _ident(self, node: Ident) -> Type:
        found = self._variable(node.name)
        if found is not None:
            return found
        named = self._library.types.get(node.name)
        if named is not None:
            self._out.type_names[id(node)] = named.name if named is not DYN else "dyn"
            return type_of(named)
        return self._fail(node.pos, _undeclared(node.name))

    def _variable(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        found = self._globals.get(name)
        if found is not None:
            self._out.variables.add(name)
        return found

    def _select(self, node: Select) -> Type:
        if not node.test and (named := self._qualified_type(node)) is not None:
            return named
        operand = self.visit(node.operand)
        found = self._field(node, operand)
        return BOOL if node.test else found

    def _qualified_type(self, node: Select) -> Type | None:
        name = qualified_name(node)
        if name is None or name not in self._library.types:
            return None
        named = self._library.types[name]
        self._out.type_names[id(node)] = named.name
        return type_of(named)

    def _field(self, node: Select, operand: Type) -> Type:
        return self._field_of(node.pos, node.field, operand)

    def _field_of(self, pos: int, name: str, operand: Type) -> Type:
        operand = self._types.apply(operand)
        if is_optional(operand):
            inner = self._field_of(pos, name, operand.params[0])
            return inner if inner is ERROR else optional_of(inner)
        match operand.kind:
            case Kind.MAP:
                return operand.params[1]
            case Kind.OBJECT:
                declared = operand.declared
                found = None if declared is None else declared.fields.get(name)
                if found is None:
                    return self._fail(pos, f"undefined field '{name}'")
                return found.declared.type
            case Kind.PARAM:
                self._types.assignable(DYN, operand)
                return DYN
            case Kind.DYN | Kind.ERROR:
                return DYN
        return self._fail(pos, f"type '{operand}' does not support field selection")

    def _call(self, node: Call) -> Type:
        if node.function in ("_?._", "_[?_]") and node.target is None:
            return self._optional_access(node)
        if node.target is None:
            return self._resolve(node, node.function, None)
        prefix = qualified_name(node.target)
        if prefix is not None and not self._is_variable(prefix):
            namespaced = f"{prefix}.{node.function}"
            if self._library.overloads(namespaced):
                self._out.namespaced.add(id(node))
                return self._resolve(node, namespaced, None)
        return self._resolve(node, node.function, node.target)

    def _is_variable(self, name: str) -> bool:
        root = name.split(".", 1)[0]
        return root in self._globals or any(root in scope for scope in self._scopes)

    def _optional_access(self, node: Call) -> Type:
        """``a.?b`` and ``a[?k]``: an optional, however many levels were optional before."""
        operand = self._types.apply(self.visit(node.args[0]))
        inner = operand.params[0] if is_optional(operand) else operand
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Const)
            found = self._field_of(name.pos, name.value, inner)
        else:
            key = self.visit(node.args[1])
            found = self._element(node, inner, key)
        return found if found is ERROR else optional_of(found)

    def _element(self, node: Call, container: Type, key: Type) -> Type:
        if container.kind is Kind.LIST and self._types.assignable(INT, key):
            return container.params[0]
        if container.kind is Kind.MAP and self._types.assignable(container.params[0], key):
            return container.params[1]
        if container.kind in (Kind.DYN, Kind.ERROR, Kind.PARAM):
            return DYN
        return self._fail(node.pos, _no_overload("_[?_]", [container, key], member=False))

    def _resolve(self, node: Call, name: str, target: Node | None) -> Type:
        before = len(self.issues)
        operands = ([] if target is None else [target]) + node.args
        actual = [self.visit(each) for each in operands]
        overloads = self._library.overloads(name)
        if not overloads:
            return self._fail(node.pos, _undeclared(name))
        if len(self.issues) > before and any(each is ERROR for each in actual):
            return ERROR
        matching: list[Overload] = []
        result: Type | None = None
        for overload in overloads:
            if overload.member != (target is not None) or len(overload.params) != len(actual):
                continue
            *expected, produced = self._types.instantiate((*overload.params, overload.result))
            if self._types.assignable_all(expected, actual):
                matching.append(overload)
                outcome = self._types.apply(produced)
                result = outcome if result is None or result == outcome else DYN
        if result is None:
            shown = [self._types.apply(each, free_to_dyn=True) for each in actual]
            return self._fail(node.pos, _no_overload(name, shown, member=target is not None))
        self._out.calls[id(node)] = tuple(matching)
        self._literal_arguments(node, name, target)
        return result

    def _literal_arguments(self, node: Call, name: str, target: Node | None) -> None:
        argument = node.args[-1] if node.args else None
        if isinstance(argument, Const):
            text = literal_issue(name, argument.value, member=target is not None)
            if text is not None:
                self._fail(argument.pos, text)

    def _list(self, node: ListLiteral) -> Type:
        element: Type | None = None
        for position, item in enumerate(node.items):
            found = self.visit(item)
            if position in node.optional:
                found = self._unwrapped(item, found)
            element = self._join(item.pos, element, found)
        return list_of(self._types.fresh() if element is None else element)

    def _map(self, node: MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(entry.key.pos, key, self.visit(entry.key))
            found = self.visit(entry.value)
            if entry.optional:
                found = self._unwrapped(entry.value, found)
            value = self._join(entry.value.pos, value, found)
        fresh = self._types.fresh
        return map_of(key or fresh(), value or fresh())

    def _unwrapped(self, node: Node, found: Type) -> Type:
        found = self._types.apply(found)
        if is_optional(found):
            return found.params[0]
        if found.kind in (Kind.DYN, Kind.ERROR):
            return DYN
        expected = optional_of(found)
        return self._fail(node.pos, f"expected type '{expected}' but found '{found}'")

    def _join(self, pos: int, previous: Type | None, current: Type) -> Type:
        """Literals are homogeneous: the next element must fit the ones before."""
        if previous is None:
            return current
        if self._types.assignable(previous, current):
            apply = self._types.apply
            return more_general(apply(previous), apply(current))
        self._fail(pos, f"expected type '{previous}' but found '{current}'")
        return previous

    def _comprehension(self, node: Comprehension) -> Type:
        scope = self._iteration(node, self._types.apply(self.visit(node.range)))
        self._scopes.append(scope)
        if node.filter is not None:
            self._expect_bool(node.filter)
        body = None if node.body is None else self.visit(node.body)
        self._scopes.pop()
        match node.macro:
            case Macro.ALL | Macro.EXISTS | Macro.EXISTS_ONE:
                return BOOL
            case Macro.FILTER:
                return list_of(scope[node.variables[0]])
            case Macro.MAP:
                return list_of(body or DYN)
            case Macro.TRANSFORM_MAP:
                return map_of(scope[node.variables[0]], body or DYN)
            case Macro.TRANSFORM_ENTRY:
                return self._entry(node, body or DYN)

    def _entry(self, node: Comprehension, body: Type) -> Type:
        expected = map_of(self._types.fresh(), self._types.fresh())
        if self._types.assignable(expected, body):
            return self._types.apply(expected)
        return self._fail(node.pos, f"expected type 'map(_, _)' but found '{body}'")

    def _iteration(self, node: Comprehension, source: Type) -> dict[str, Type]:
        pair: tuple[Type, Type]
        match source.kind:
            case Kind.LIST:
                pair = (INT, source.params[0])
            case Kind.MAP:
                pair = source.params[0], source.params[1]
            case Kind.DYN | Kind.ERROR | Kind.PARAM:
                pair = (DYN, DYN)
            case _:
                text = (
                    f"expression of type '{source}' cannot be range of a comprehension "
                    "(must be list, map, or dynamic)"
                )
                self._fail(node.range.pos, text)
                pair = (ERROR, ERROR)
        if len(node.variables) == 2:
            return dict(zip(node.variables, pair, strict=True))
        return {node.variables[0]: pair[0] if source.kind is Kind.MAP else pair[1]}

    def _expect_bool(self, node: Node) -> None:
        found = self.visit(node)
        if not self._types.assignable(BOOL, found):
            self._fail(node.pos, f"expected type 'bool' but found '{self._types.apply(found)}'")

    def _bind(self, node: Bind) -> Type:
        value = self.visit(node.value)
        self._scopes.append({node.variable: value})
        found = self.visit(node.body)
        self._scopes.pop()
        return found


_CONSTANTS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


def _constant(node: Const) -> Type:
    return _CONSTANTS[type(node.value)]


def _undeclared(name: str) -> str:
    return f"undeclared reference to '{name}' (in container '')"


def _no_overload(name: str, actual: list[Type], *, member: bool) -> str:
    shown = [str(each) for each in actual]
    signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
    return f"found no matching overload for '{name}' applied to '{signature}'"
