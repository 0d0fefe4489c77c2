"""Interface of the rule engine for ``x-kubernetes-validations``: compiled per CRD change, run per
write.

``pipeline.py`` runs a ``Program``; ``cel_rules`` implements it with CEL and is imported for the
first schema that has a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from instar.base.field_errors import FieldError
from instar.kube.schema.structure.structural import Structural


class RuleResult(NamedTuple):
    """Errors and warnings of the rules; warnings are failures on unchanged values (ratcheting)."""

    errors: list[FieldError]
    warnings: list[str]


class Program(Protocol):
    """All rules of one version's schema, compiled."""

    def evaluate(self, new: Any, old: Any | None) -> RuleResult:
        """Run the rules. ``old`` is None on create; both are whole objects at the request's
        version."""
        ...


RuleCompiler = Callable[[Structural], Program | None]
"""Returns None when the schema has no rule, so that the write path can skip the step."""


def no_rules(root: Structural) -> None:
    """A ``RuleCompiler`` that ignores the schema's rules."""
