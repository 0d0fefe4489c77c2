"""Runs CEL rules on schema defaults when a CRD is written: a default must satisfy its own rules.

Called by ``check.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.field_errors import FieldError, child, key
from instar.kube.schema.cel_rules.compile import build
from instar.kube.schema.cel_rules.evaluate import Budget, CelProgram
from instar.kube.schema.structure.structural import Structural


def default_rule_errors(root: Structural, path: str) -> list[FieldError]:
    """Return errors of defaults against rules on and below their node; all share one cost
    budget."""
    errors: list[FieldError] = []
    budget = Budget()
    for node, at in _with_defaults(root, path):
        errors += _one_default(node, child(at, "default"), budget, root=node is root)
        if budget.remaining < 0:
            break
    return errors


def _with_defaults(root: Structural, path: str) -> Iterator[tuple[Structural, str]]:
    todo = [(root, path)]
    while todo:
        node, at = todo.pop()
        if node.default is not None:
            yield node, at
        below = child(at, "properties")
        todo += [(item, key(below, name)) for name, item in node.properties.items()]
        if node.items is not None:
            todo.append((node.items, child(at, "items")))


def _one_default(node: Structural, path: str, budget: Budget, *, root: bool) -> list[FieldError]:
    """Check one default as an update from itself and, if that passes, as a create; the higher
    cost counts."""
    tree = build(node, root=root)
    if tree is None:
        return []
    program, before = CelProgram(tree), budget.remaining
    errors = program.evaluate_at(path, node.default, node.default, budget).errors
    if errors:
        return errors
    after, budget.remaining = budget.remaining, before
    errors = program.evaluate_at(path, node.default, None, budget).errors
    budget.remaining = min(budget.remaining, after)
    return errors
