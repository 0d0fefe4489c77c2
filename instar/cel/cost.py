"""What an expression can cost at worst, from its tree and the declared sizes. No object needed."""

from __future__ import annotations

from collections.abc import Mapping

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
)
from instar.cel.checker import Checked
from instar.cel.comprehensions import ESTIMATED_ENTRY, ESTIMATED_TURN
from instar.cel.declared import Declared
from instar.cel.functions import UNBOUNDED, Overload, Shape
from instar.cel.interpreter import LIST_COST, MAP_COST
from instar.cel.types import Kind, is_optional

Estimate = tuple[float, Shape]
_SCALAR = Shape(1)
_KEY = Shape(0)
"""Upstream gives the keys of a map no size."""
_SIZED = (Kind.LIST, Kind.MAP, Kind.DYN)
_SIZED_NAMES = ("string", "bytes")


def shape_of(declared: Declared) -> Shape:
    element = None if declared.element is None else shape_of(declared.element)

    def field(name: str) -> Shape:
        found = declared.fields.get(name)
        return _SCALAR if found is None else shape_of(found.declared)

    is_map = declared.type.kind is Kind.MAP
    return Shape(declared.max_size, element, field, _KEY if is_map else None)


def estimate(checked: Checked, variables: Mapping[str, Shape]) -> float:
    """Cost units of one evaluation at the largest sizes the schema allows."""
    return _Estimator(checked, dict(variables)).visit(checked.tree)[0]


class _Estimator:
    def __init__(self, checked: Checked, shapes: dict[str, Shape]) -> None:
        self._checked = checked
        self._shapes = shapes

    def visit(self, node: Node) -> Estimate:
        if id(node) in self._checked.type_names:
            return 1, _SCALAR
        match node:
            case Const():
                sized = isinstance(node.value, (str, bytes))
                return 0, Shape(len(node.value)) if sized else _SCALAR
            case Ident():
                return 1, self._shapes.get(node.name, _SCALAR)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)
            case Bind():
                return self._bind(node)
            case StructLiteral():
                return 40, _SCALAR

    def _select(self, node: Select) -> Estimate:
        cost, shape = self.visit(node.operand)
        if node.test:
            return cost, _SCALAR
        return cost + 1, self._member(node.operand, shape, node.field)

    def _member(self, operand: Node, shape: Shape, name: str) -> Shape:
        kind = self._checked.types[id(operand)]
        if is_optional(kind):
            kind = kind.params[0]
        if kind.kind is Kind.MAP:
            return shape.element or Shape(UNBOUNDED)
        return Shape(UNBOUNDED) if shape.fields is None else shape.fields(name)

    def _call(self, node: Call) -> Estimate:
        match node.function:
            case "_&&_" | "_||_":
                (left, _), (right, _) = self.visit(node.args[0]), self.visit(node.args[1])
                return left + right, _SCALAR
            case "_?_:_":
                return self._choice(node)
            case "_?._":
                return self._optional_select(node)
            case "_[?_]":
                cost, shape = self.visit(node.args[0])
                return cost + self.visit(node.args[1])[0] + 1, shape.element or _SCALAR
        estimates = [self.visit(each) for each in self._checked.operands(node)]
        shapes = [shape for _, shape in estimates]
        candidates = self._checked.calls[id(node)]
        own = max(_work(overload, shapes) for overload in candidates)
        return sum(cost for cost, _ in estimates) + own, self._result(node, candidates, shapes)

    def _choice(self, node: Call) -> Estimate:
        condition, _ = self.visit(node.args[0])
        (then, one), (otherwise, other) = self.visit(node.args[1]), self.visit(node.args[2])
        return condition + max(then, otherwise), _larger(one, other)

    def _optional_select(self, node: Call) -> Estimate:
        cost, shape = self.visit(node.args[0])
        name = node.args[1]
        assert isinstance(name, Const)
        return cost + 1, self._member(node.args[0], shape, name.value)

    def _result(self, node: Call, candidates: tuple[Overload, ...], shapes: list[Shape]) -> Shape:
        if node.function == "range" and isinstance(node.args[0], Const):
            return Shape(max(node.args[0].value, 0), _SCALAR)
        shaped = [each.shape(*shapes) for each in candidates if each.shape is not None]
        if shaped:
            return max(shaped, key=lambda shape: shape.size)
        kind = self._checked.types[id(node)]
        if kind.kind in _SIZED or kind.name in _SIZED_NAMES:
            total = sum(shape.size for shape in shapes)
            return Shape(total, Shape(total))
        return _SCALAR

    def _list(self, node: ListLiteral) -> Estimate:
        estimates = [self.visit(item) for item in node.items]
        element = _SCALAR
        for _, shape in estimates:
            element = _larger(element, shape)
        return sum(cost for cost, _ in estimates) + LIST_COST, Shape(len(estimates), element)

    def _map(self, node: MapLiteral) -> Estimate:
        total: float = MAP_COST
        element = key = _SCALAR
        for entry in node.entries:
            key_cost, key_shape = self.visit(entry.key)
            cost, shape = self.visit(entry.value)
            total += key_cost + cost
            element, key = _larger(element, shape), _larger(key, key_shape)
        return total, Shape(len(node.entries), element, None, key)

    def _comprehension(self, node: Comprehension) -> Estimate:
        cost, source = self.visit(node.range)
        first, second = _variables(source)
        names = node.variables
        pair = (first, second) if len(names) == 2 else (source.key or second,)
        outer = self._shapes
        self._shapes = {**outer, **dict(zip(names, pair, strict=True))}
        turn: float = ESTIMATED_TURN[node.macro]
        if node.filter is not None:
            turn += self.visit(node.filter)[0]
        built = _SCALAR
        if node.body is not None:
            body_cost, built = self.visit(node.body)
            turn += body_cost
        self._shapes = outer
        total = cost + ESTIMATED_ENTRY[node.macro] + source.size * turn
        return total, _built(node.macro, source, pair[0], built)

    def _bind(self, node: Bind) -> Estimate:
        cost, shape = self.visit(node.value)
        outer = self._shapes
        self._shapes = {**outer, node.variable: shape}
        body, result = self.visit(node.body)
        self._shapes = outer
        return cost + body, result


def _variables(source: Shape) -> tuple[Shape, Shape]:
    return source.key or _SCALAR, source.element or _SCALAR


def _built(macro: Macro, source: Shape, item: Shape, body: Shape) -> Shape:
    match macro:
        case Macro.FILTER:
            return Shape(source.size, item)
        case Macro.MAP:
            return Shape(source.size, body)
        case Macro.TRANSFORM_MAP:
            return Shape(source.size, body, None, item)
        case Macro.TRANSFORM_ENTRY:
            return Shape(source.size, body.element, None, body.key)
    return _SCALAR


def _larger(one: Shape, other: Shape) -> Shape:
    return one if one.size >= other.size else other


def _work(overload: Overload, shapes: list[Shape]) -> float:
    work = overload.estimate or overload.work
    if work is None:
        return 1
    measure = _traversal if overload.traverses else _size
    return float(work(*map(measure, shapes)))


def _size(shape: Shape) -> float:
    return shape.size


def _traversal(shape: Shape) -> float:
    if shape.element is None:
        return shape.size
    return shape.size * (1 + shape.element.size * 0.1)
