"""Lazy import of the CEL engine: loads it for the first schema that has a rule.

Called by ``schema/pipeline.py`` and ``server/lifecycle/composition.py``. CEL is a fifth of what a
server imports, and most servers start without a rule.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base.field_errors import FieldError
from instar.kube.schema.rule_engine import Program
from instar.kube.schema.structure.structural import Structural


def compile_if_any(root: Structural) -> Program | None:
    """Compile rules if the schema has some; a ``RuleCompiler``."""
    if not has_rules(root):
        return None
    # Imported lazily, see the module docstring.
    from instar.kube.schema.cel_rules.evaluate import compile_rules

    return compile_rules(root)


def check_if_any(
    root: Structural,
    path: str,
    known_rules: frozenset[str],
    per_expression_limit_waived: bool,
    spoiled: Callable[[str], bool],
) -> list[FieldError]:
    """Check rules if the schema has some; a ``RuleChecker``."""
    if not has_rules(root):
        return []
    # Imported lazily, see the module docstring.
    from instar.kube.schema.cel_rules.check import check_rules

    return check_rules(root, path, known_rules, per_expression_limit_waived, spoiled)


def has_rules(node: Structural) -> bool:
    if node.rules:
        return True
    children: list[Structural] = [*node.properties.values()]
    if node.items is not None:
        children.append(node.items)
    if isinstance(node.additional, Structural):
        children.append(node.additional)
    return any(has_rules(child) for child in children)
