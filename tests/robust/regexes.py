"""Every regular expression of the package, found in its source: where it is and how it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import instar

ROOT = Path(instar.__file__).parent
_FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer"}


class Use(NamedTuple):
    module: str
    name: str
    """What it is assigned to, or the function it stands in."""
    methods: frozenset[str]
    """How an assigned one is called."""

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def uses() -> Iterator[Use]:
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if "import re\n" not in text:
            continue
        tree = ast.parse(text)
        module = ".".join(("instar", *path.relative_to(ROOT).with_suffix("").parts))
        called = _called(tree)
        for node, holder in _calls(tree):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            named = holder if method == "compile" else f"{holder}()"
            yield Use(module, named, frozenset(called.get(holder, ())))


def _calls(tree: ast.AST, holder: str = "") -> Iterator[tuple[ast.Call, str]]:
    for node in ast.iter_child_nodes(tree):
        name = holder
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and not holder:
            name = node.targets[0].id
        if isinstance(node, ast.Call) and _is_regex(node.func):
            yield node, name
        yield from _calls(node, name)


def _is_regex(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in _FUNCTIONS
    )


def _called(tree: ast.AST) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found
