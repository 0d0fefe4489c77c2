"""Descriptions from source code: a class's docstring and the strings below its fields.

Called by ``annotations.py`` and ``roots.py``.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple


class ModelDescriptions(NamedTuple):
    doc: str
    fields: Mapping[str, str]


def descriptions_of(cls: type[Any]) -> ModelDescriptions:
    """Return the descriptions; empty if the source is not available."""
    return _module_descriptions(cls.__module__).get(cls.__qualname__) or ModelDescriptions("", {})


@lru_cache(maxsize=64)
def _module_descriptions(name: str) -> dict[str, ModelDescriptions]:
    try:
        source = inspect.getsource(sys.modules[name])
        tree = ast.parse(source)
    except (KeyError, OSError, TypeError, SyntaxError, ValueError):
        return {}
    found: dict[str, ModelDescriptions] = {}
    _collect(tree.body, "", found)
    return found


def _collect(body: list[ast.stmt], prefix: str, found: dict[str, ModelDescriptions]) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef):
            name = f"{prefix}{node.name}"
            found[name] = ModelDescriptions(ast.get_docstring(node) or "", _fields(node.body))
            _collect(node.body, f"{name}.", found)


def _fields(body: list[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, after in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = after.value.value
            if isinstance(text, str):
                found[field.target.id] = inspect.cleandoc(text).strip()
    return found
