"""The seam for ``x-kubernetes-validations``: compile once per CRD change, run per write.

Whoever runs rules takes a ``Program``. The engine behind it (CEL, ``schema/validations``) can
change, and is loaded for the first schema that has a rule. Pure: values in, findings out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from instar.base.field_errors import FieldError
from instar.kube.schema.structure.structural import Structural


class RuleResult(NamedTuple):
    """What the rules say; ``warnings`` are failures forgiven because nothing changed."""

    errors: list[FieldError]
    warnings: list[str]


class Program(Protocol):
    """All rules of one version's schema, compiled."""

    def evaluate(self, new: Any, old: Any | None) -> RuleResult:
        """``old`` is None on create; both are whole objects at the request's version."""
        ...


RuleCompiler = Callable[[Structural], Program | None]
"""None when the schema holds no rule, so the write path can skip the step."""


def no_rules(root: Structural) -> None:
    """For schemas whose rules shall not be run."""
