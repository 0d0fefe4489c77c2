"""The seam to the CEL engine: text and declared variables in, something to run out.

Google's C++ engine (``cel-expr-python`` 0.1.3) was measured first and cannot carry Kubernetes
rules: object types can be declared only as protobuf messages, so ``undefined field`` and typed
``has()`` are out of reach; there is no cost accounting; a loop ends at 10 000 turns and an
expression at 32 levels, both below upstream's limits; two-variable comprehensions, mixed number
comparison and homogeneous literals are missing; run-time errors read differently. So parser,
checker and interpreter are our own; the C++ engine is one oracle of the tests, kube-apiserver's own
answers the other.
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
    return None


class CelRunner(Protocol):
    """An expression ready to run."""

    def run(self, values: Sequence[Any], limit: int, deadline: float) -> tuple[Any, int]:
        """The value, or the CelError it ended in, and the cost; raises CostExceeded beyond
        ``limit`` or ``deadline``."""
        ...


def analyse(
    source: str,
    variables: Mapping[str, Type],
    *,
    types: TypeNamed = no_types,
    library: Library = KUBERNETES,
) -> Checked:
    """Parse and type-check; raises BadExpression with the framed report.

    ``types`` finds the named object types an expression may build: ``Name{field: value}``. How
    variables and types are declared is in ``declaring``.
    """
    checked = check(source, parse(source), variables, library, types)
    validate(checked)
    return checked


def prepare(checked: Checked, variables: Sequence[str]) -> CelRunner:
    """``variables`` fixes the order in which ``run`` takes their values; raises BadProgram."""
    return compile_tree(checked, variables)
