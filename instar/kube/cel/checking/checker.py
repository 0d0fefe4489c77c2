"""CEL type checker, called by ``engine.analyse``: resolves names, collects all type errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from instar.kube.cel.checking.checked import (
    CONSTANT_TYPES,
    Checked,
    OpenedOptional,
    ResolvedNames,
    TypeNamed,
    Variable,
)
from instar.kube.cel.checking.overloads import resolve
from instar.kube.cel.functions import Library, Overload, Resolved
from instar.kube.cel.syntax import issues
from instar.kube.cel.syntax.ast import (
    CallNode,
    Const,
    Fold,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    SharedTree,
    StructLiteral,
    qualified_name,
)
from instar.kube.cel.syntax.issues import MOST_ISSUES, BadExpression, Issue
from instar.kube.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    STRING,
    CelKind,
    Substitution,
    Type,
    is_optional,
    list_of,
    map_of,
    more_general,
    optional_of,
    type_of,
    unwrap_optional,
)

_Todo: TypeAlias = list[tuple[Callable[[Any], None], Any]]


def check(
    source: str,
    tree: Node,
    variables: Mapping[str, Type],
    library: Library,
    types: TypeNamed,
) -> Checked:
    """Type-check a tree. ``types`` resolves names that are not in the library. Raises
    BadExpression."""
    checker = _Checker(source, tree, variables, library, types)
    checker.walk()
    if checker.issues:
        raise BadExpression(source, checker.issues)
    return checker.finish()


class _Checker:
    def __init__(
        self,
        source: str,
        tree: Node,
        variables: Mapping[str, Type],
        library: Library,
        types: TypeNamed,
    ) -> None:
        self.issues: list[Issue] = []
        self._library = library
        self._names = ResolvedNames(variables, lambda name: library.types.get(name) or types(name))
        self._types = Substitution()
        self._todo: _Todo = [(self._enter, tree)]
        self._out = Checked(source, tree)
        self._of = self._out.types
        self._noted: dict[int, tuple[int, int]] = {}
        """Range of the issues found in a tree that occurs a second time."""

    def walk(self) -> None:
        todo = self._todo
        while todo:
            step, node = todo.pop()
            step(node)

    def finish(self) -> Checked:
        apply, out = self._types.apply, self._out
        for key, each in self._of.items():
            if each.params or each.kind is CelKind.PARAM:
                self._of[key] = apply(each, free_to_dyn=True)
        out.type = self._of[id(out.tree)]
        return out

    def _enter(self, node: Node) -> None:
        _ENTER[type(node)](self, node)

    def _done(self, node: Node, found: Type) -> None:
        self._of[id(node)] = found
        self._out.order.append(node)

    def _later(self, *steps: tuple[Callable[[Any], None], Any]) -> None:
        self._todo.extend(reversed(steps))

    def _visit(self, nodes: list[Node], then: Callable[[Any], None], node: Any) -> None:
        """Visit all of ``nodes`` in order, then the node itself."""
        self._todo.append((then, node))
        self._todo.extend([(self._enter, each) for each in reversed(nodes)])

    def _fail(self, pos: int, text: str) -> Type:
        self.issues.append(Issue(pos, text))
        return ERROR

    def _mismatch(self, pos: int, expected: Type, found: Type) -> Type:
        return self._fail(pos, f"expected type '{expected}' but found '{found}'")

    # Names

    def _const(self, node: Const) -> None:
        self._done(node, CONSTANT_TYPES[type(node.value)])

    def _ident(self, node: Ident) -> None:
        if not self._resolved(node, node.name):
            self._done(node, self._fail(node.pos, issues.undeclared_message(node.name)))

    def _resolved(self, node: Node, written: str) -> bool:
        name = written.removeprefix(".")
        variable = self._names.variable(name)
        if variable is not None:
            self._out.names[id(node)] = variable
            if variable.fold is None:
                self._out.variables.add(name)
            self._done(node, variable.type)
            return True
        named = self._names.type(name)
        if named is None:
            return False
        self._out.type_names[id(node)] = named.name
        self._done(node, type_of(named))
        return True

    def _select(self, node: Select) -> None:
        name = None if node.test else qualified_name(node)
        if name is None or not self._resolved(node, name):
            self._visit([node.operand], self._leave_select, node)

    def _leave_select(self, node: Select) -> None:
        found = self._field(node.pos, node.field, self._of[id(node.operand)], optional=False)
        self._done(node, BOOL if node.test else found)

    def _field(self, pos: int, name: str, operand: Type, *, optional: bool) -> Type:
        operand = self._types.apply(operand)
        found = self._field_of(pos, name, unwrap_optional(operand))
        return optional_of(found) if optional or is_optional(operand) else found

    def _field_of(self, pos: int, name: str, target: Type) -> Type:
        match target.kind:
            case CelKind.MAP:
                return target.params[1]
            case CelKind.OBJECT:
                if target.declared is None:
                    return self._fail(pos, f"unexpected failed resolution of '{target.name}'")
                found = target.declared.field_named(name)
                if found is None:
                    return self._fail(pos, f"undefined field '{name}'")
                return found.declared.type
            case CelKind.PARAM:
                self._types.assignable(DYN, target)
            case CelKind.DYN | CelKind.ERROR:
                pass
            case _:
                self._fail(pos, f"type '{target}' does not support field selection")
        return DYN

    # Calls

    def _call(self, node: CallNode) -> None:
        if node.function == "_?._":
            self._visit(node.args[:1], self._leave_optional_select, node)
        elif node.target is None:
            self._visit(node.args, self._leave_call, node)
        elif self._library.overloads(_namespaced(node)):
            self._out.namespaced.add(id(node))
            self._visit(node.args, self._leave_namespaced, node)
        else:
            self._call_method(node, node.target)

    def _call_method(self, node: CallNode, target: Node) -> None:
        self._noted[id(target)] = (len(self.issues), 0)
        self._visit([*node.args, target], self._leave_method, node)

    def _leave_optional_select(self, node: CallNode) -> None:
        name = node.args[1]
        assert isinstance(name, Const)
        found = self._field(node.pos, name.value, self._of[id(node.args[0])], optional=True)
        self._of[id(name)] = STRING
        self._done(node, found)

    def _leave_call(self, node: CallNode) -> None:
        self._resolve(node, node.function.removeprefix("."), node.args, member=False)

    def _leave_namespaced(self, node: CallNode) -> None:
        self._resolve(node, _namespaced(node), node.args, member=False)

    def _leave_method(self, node: CallNode) -> None:
        assert node.target is not None
        start, _ = self._noted[id(node.target)]
        self._noted[id(node.target)] = (start, len(self.issues))
        self._resolve(node, node.function, [node.target, *node.args], member=True)

    def _resolve(self, node: CallNode, name: str, operands: list[Node], *, member: bool) -> None:
        overloads = self._library.overloads(name)
        actual = [self._of[id(each)] for each in operands]
        if not overloads:
            self._done(node, self._fail(node.pos, issues.undeclared_message(name)))
        elif name in ("_&&_", "_||_"):
            self._done(node, self._logical(node, overloads[0], actual))
        elif (found := self._overloads(name, actual, member)) is not None:
            result, self._out.calls[id(node)] = found
            self._done(node, result)
        else:
            shown = [self._types.apply(each, free_to_dyn=True) for each in actual]
            self._done(node, self._fail(node.pos, issues.no_overload_message(name, shown, member)))

    def _overloads(self, name: str, actual: list[Type], member: bool) -> Resolved | None:
        return resolve(self._types, self._library, name, actual, member=member)

    def _logical(self, node: CallNode, overload: Overload, actual: list[Type]) -> Type:
        found = BOOL
        for term, each in zip(node.args, actual, strict=True):
            if not self._types.assignable(each, BOOL):
                found = self._mismatch(term.pos, BOOL, each)
        self._out.calls[id(node)] = (overload,)
        return found

    # Literals

    def _list(self, node: ListLiteral) -> None:
        self._visit(node.items, self._leave_list, node)

    def _leave_list(self, node: ListLiteral) -> None:
        element: Type | None = None
        for position, item in enumerate(node.items):
            found = self._of[id(item)]
            if position in node.optional:
                found = self._element_type(item, found)
            element = self._join(element, found)
        self._done(node, list_of(self._types.fresh() if element is None else element))

    def _map(self, node: MapLiteral) -> None:
        parts = [part for entry in node.entries for part in (entry.key, entry.value)]
        self._visit(parts, self._leave_map, node)

    def _leave_map(self, node: MapLiteral) -> None:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self._of[id(entry.key)])
            found = self._of[id(entry.value)]
            if entry.optional:
                found = self._element_type(entry.value, found)
            value = self._join(value, found)
        fresh = self._types.fresh
        self._done(node, map_of(key or fresh(), value or fresh()))

    def _element_type(self, node: Node, found: Type) -> Type:
        if not is_optional(found) and found.kind is not CelKind.DYN:
            self._mismatch(node.pos, optional_of(found), found)
        return unwrap_optional(found)

    def _join(self, previous: Type | None, current: Type) -> Type:
        """Return the common type of a literal's elements; ``literal_validators`` checks that
        they agree."""
        if previous is None:
            return current
        if self._types.assignable(previous, current):
            return more_general(previous, current)
        return DYN

    def _struct(self, node: StructLiteral) -> None:
        self._visit([field.value for field in node.fields], self._leave_struct, node)

    def _leave_struct(self, node: StructLiteral) -> None:
        named = self._names.type(node.name.removeprefix("."))
        if named is None:
            self._done(node, self._fail(node.pos, issues.undeclared_message(node.name)))
            return
        if named.kind is not CelKind.OBJECT:
            self._fail(node.pos, f"'{named}' is not a message type")
            named = ERROR
        self._done(node, named)
        for field in node.fields:
            expected = self._field_of(field.pos, field.name, named)
            found = self._of[id(field.value)]
            if field.optional:
                found = self._element_type(field.value, found)
            if not self._types.assignable(expected, found):
                self._fail(
                    field.pos,
                    f"expected type of field '{field.name}' is '{expected}' but provided type is "
                    f"'{found}'",
                )

    # Folds

    def _fold(self, node: Fold) -> None:
        self._later(
            (self._enter, node.range),
            (self._enter, node.initial),
            (self._open, node),
            (self._enter, node.condition),
            (self._assert_condition, node),
            (self._enter, node.step),
            (self._assert_step, node),
            (self._enter, node.result),
            (self._leave_fold, node),
        )

    def _open(self, node: Fold) -> None:
        accumulator = Variable(node.accumulator, self._of[id(node.initial)], node)
        source = self._types.apply(self._of[id(node.range)])
        types = self._iteration(node, source)
        variables = tuple(
            Variable(name, type, node) for name, type in zip(node.variables, types, strict=True)
        )
        self._names.open(accumulator)
        self._names.open(*variables)
        self._out.order.append(OpenedOptional(node, variables, accumulator))

    def _iteration(self, node: Fold, source: Type) -> tuple[Type, ...]:
        pair: tuple[Type, Type]
        match source.kind:
            case CelKind.LIST:
                pair = (INT, source.params[0])
            case CelKind.MAP:
                pair = source.params[0], source.params[1]
            case CelKind.DYN | CelKind.ERROR | CelKind.PARAM:
                self._types.assignable(DYN, source)
                pair = (DYN, DYN)
            case _:
                text = (
                    f"expression of type '{source}' cannot be range of a comprehension "
                    "(must be list, map, or dynamic)"
                )
                self._fail(node.range.pos, text)
                pair = (ERROR, ERROR)
        if len(node.variables) == 2:
            return pair
        return (pair[1] if source.kind is CelKind.LIST else pair[0],)

    def _assert_condition(self, node: Fold) -> None:
        self._assert(node.condition, BOOL)

    def _assert_step(self, node: Fold) -> None:
        self._assert(node.step, self._of[id(node.initial)])
        self._names.close()

    def _assert(self, node: Node, expected: Type) -> None:
        found = self._of[id(node)]
        if not self._types.assignable(expected, found):
            self._mismatch(node.pos, expected, found)

    def _leave_fold(self, node: Fold) -> None:
        self._names.close()
        self._done(node, self._types.apply(self._of[id(node.result)]))

    def _shared_tree(self, node: SharedTree) -> None:
        """Handle the second copy of a checked tree, in the same scope; its issues count twice."""
        start, end = self._noted[id(node.node)]
        if len(self.issues) < MOST_ISSUES:
            self.issues += self.issues[start:end]
        self._done(node, self._of[id(node.node)])


_ENTER: dict[type, Callable[[_Checker, Any], None]] = {
    Const: _Checker._const,
    Ident: _Checker._ident,
    Select: _Checker._select,
    CallNode: _Checker._call,
    ListLiteral: _Checker._list,
    MapLiteral: _Checker._map,
    StructLiteral: _Checker._struct,
    Fold: _Checker._fold,
    SharedTree: _Checker._shared_tree,
}


def _namespaced(node: CallNode) -> str:
    """Return the function's name if its target is part of it (``sets.contains``), else ""."""
    prefix = None if node.target is None else qualified_name(node.target)
    return "" if prefix is None else f"{prefix.removeprefix('.')}.{node.function}"
