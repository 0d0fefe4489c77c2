"""Entry point of the CEL engine: compiles an expression with declared variables into a runner.

Called by ``kube/schema/cel_rules/compile.py``, ``kube/admission/compile.py``,
``kube/builtin_rules/devices.py`` (device selectors) and ``server/identity/oidc/claims.py``.

Google's C++ engine (``cel-expr-python`` 0.1.3) was tried first and cannot run Kubernetes rules:
object types can be declared only as protobuf messages, so ``undefined field`` and typed ``has()``
are not possible; there is no cost accounting; a loop ends at 10 000 iterations and an expression at
32 levels, both below upstream's limits; two-variable comprehensions, mixed number comparison and
homogeneous literals are missing; run-time errors differ. So parser, checker and interpreter are our
own; the C++ engine is one oracle of the tests, kube-apiserver the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from instar.kube.cel.checking.checked import Checked, TypeNamed
from instar.kube.cel.checking.checker import check
from instar.kube.cel.checking.literal_validators import validate
from instar.kube.cel.functions import Library
from instar.kube.cel.library import KUBERNETES
from instar.kube.cel.runtime.interpreter import compile_tree
from instar.kube.cel.syntax.issues import BadExpression, BadProgram
from instar.kube.cel.syntax.parser import parse
from instar.kube.cel.types import Type

__all__ = ["BadExpression", "BadProgram", "CelRunner", "Checked", "analyse", "prepare"]


def no_types(_name: str) -> Type | None:
    """Resolve no message type; for expressions that may not build objects."""
    return None


class CelRunner(Protocol):
    """A compiled expression."""

    def run(self, values: Sequence[Any], limit: int, deadline: float) -> tuple[Any, int]:
        """Return the value, or the CelError, and the cost. Raises CostExceeded beyond ``limit``
        or ``deadline``."""
        ...


def analyse(
    source: str,
    variables: Mapping[str, Type],
    *,
    types: TypeNamed = no_types,
    library: Library = KUBERNETES,
) -> Checked:
    """Parse and type-check. Raises BadExpression with the framed report.

    ``types`` finds the named object types that an expression may construct: ``Name{field: value}``.
    See ``declared_types`` for the declaration of variables and types.
    """
    checked = check(source, parse(source), variables, library, types)
    validate(checked)
    return checked


def prepare(checked: Checked, variables: Sequence[str]) -> CelRunner:
    """Compile to a runner. ``variables`` fixes the order of the values in ``run``. Raises
    BadProgram."""
    return compile_tree(checked, variables)
