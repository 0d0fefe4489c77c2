"""Finds comparisons of JSON values by Python's ``==``, ``in``, ``set()`` and dict keys.

Called by ``test_json_equality.py``. Reads the syntax tree only: a name is a JSON value if its
annotation is one of ``JSON_TYPES`` or if it was taken out of such a value, in the same function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.sources import parsed

JSON_TYPES = frozenset(
    (
        "Any", "Object", "Object | None", "list[Any]", "list[Object]", "Sequence[Any]",
        "dict[str, Any]", "Mapping[str, Any]", "Sequence[Object]", "Node",
    )
)  # fmt: skip
_TAKEN = frozenset(("get", "pop", "setdefault"))
_HASHED = frozenset(("set", "frozenset", "Counter"))


class JsonComparisons(ast.NodeVisitor):
    """Collects the lines of one module."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self._known: list[dict[str, bool]] = [{}]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        known = {each.arg: _is_json_type(each.annotation) for each in arguments}
        self._known.append({**self._known[-1], **known})
        self.generic_visit(node)
        self._known.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._known[-1][node.target.id] = _is_json_type(node.annotation)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._learn(target, node.value)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._learn_items(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._learn_items(node.target, node.iter)
        self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehended(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehended(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehended(node)
        if self._is_json(node.elt):
            self.found.append((node.lineno, ast.unparse(node)))

    def _comprehended(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> None:
        for generator in node.generators:
            self.visit(generator)
        self.visit(node.elt)

    def _learn(self, target: ast.expr, value: ast.expr) -> None:
        """Note which names of an assignment are JSON values."""
        if isinstance(target, ast.Name):
            self._known[-1][target.id] = self._is_json(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=False):
                self._learn(one, its)

    def _learn_items(self, target: ast.expr, values: ast.expr) -> None:
        """Note which names of a loop are JSON values: of ``items()`` the second, as a member's name
        is a text."""
        call = values.func if isinstance(values, ast.Call) else None
        if isinstance(call, ast.Attribute) and call.attr in ("items", "values"):
            last = target.elts[-1] if isinstance(target, ast.Tuple) else target
            self._learn(last, call.value)
        elif isinstance(target, ast.Name):
            self._known[-1][target.id] = self._is_list(values)

    def _is_list(self, node: ast.expr) -> bool:
        """Names that are iterated may hold an object, whose names are texts; parts of one are
        lists."""
        return not isinstance(node, ast.Name) and self._is_json(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            compares = isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
            if compares and self._is_json(left) and self._is_json(right):
                self.found.append((node.lineno, ast.unparse(node)))
            left = right
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        hashed = isinstance(node.func, ast.Name) and node.func.id in _HASHED
        if hashed and any(map(self._is_json, node.args)):
            self.found.append((node.lineno, ast.unparse(node)))
        self.generic_visit(node)

    def _is_json(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return self._known[-1].get(node.id, False)
        if isinstance(node, ast.Subscript):
            return self._is_json(node.value)
        if isinstance(node, ast.BoolOp):
            return any(map(self._is_json, node.values))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in _TAKEN and self._is_json(node.func.value)
        return False


def _is_json_type(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) in JSON_TYPES


@cache
def json_comparisons(root: Path) -> tuple[tuple[str, int, str], ...]:
    """Return (module, line, expression) of each comparison; two tests need them."""
    return tuple(_comparisons(root))


def _comparisons(root: Path) -> Iterator[tuple[str, int, str]]:
    for path in sorted(root.rglob("*.py")):
        visitor = JsonComparisons()
        visitor.visit(parsed(path))
        for line, text in visitor.found:
            yield path.relative_to(root).as_posix(), line, text
