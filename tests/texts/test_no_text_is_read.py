"""No source compares, searches or takes apart the text of an error: a guard beside the proof."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import instar
from tests.support.sources import parsed

_ROOT = Path(instar.__file__).parent
_TEXTS = {"detail", "message"}
"""Attributes that hold what people read."""
_READERS = ("startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix")
_SEARCHES = ("match", "search", "fullmatch", "findall", "finditer")
_COMPARISONS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def test_no_text_of_an_error_is_compared_or_taken_apart() -> None:
    found = {
        f"{path.relative_to(_ROOT)}: {text}"
        for path in sorted(_ROOT.rglob("*.py"))
        for text in _read_texts(parsed(path))
    }

    assert found == set()


def _read_texts(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], _COMPARISONS):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _READERS:
                operands = [node.func.value]
            elif node.func.attr in _SEARCHES:
                operands = list(node.args)
        yield from (ast.unparse(item) for item in operands if _is_text(item))


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _TEXTS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "body" and not node.args
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return any(isinstance(item, ast.Name) and "error" in item.id for item in node.args)
    return isinstance(node, ast.Subscript) and _is_message_key(node.slice)


def _is_message_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "message"
