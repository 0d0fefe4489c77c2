"""The seam to the CEL engine: text and declared variables in, something to run out.

Google's C++ engine (``cel-expr-python`` 0.1.3) was measured first and cannot carry Kubernetes
rules: object types can be declared only as protobuf messages, so ``undefined field`` and typed
``has()`` are out of reach; there is no cost accounting; a loop ends at 10 000 turns and an
expression at 32 levels, both below upstream's limits; two-variable comprehensions, mixed number
comparison and homogeneous literals are missing; run-time errors read differently. So parser,
checker and interpreter are our own (``lang/``); the C++ engine is the oracle of the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from instar.cel.checker import Checked, TooDeep, check
from instar.cel.interpreter import compile_tree
from instar.cel.issues import BadExpression, BadProgram, Issue
from instar.cel.library import KUBERNETES
from instar.cel.parser import parse
from instar.cel.types import Type

__all__ = ["BadExpression", "BadProgram", "Checked", "Runner", "analyse", "prepare"]


class Runner(Protocol):
    """An expression ready to run."""

    def run(self, values: Sequence[Any], limit: float, deadline: float) -> tuple[Any, float]:
        """Result and cost; raises CelError, or CostExceeded beyond ``limit`` or ``deadline``."""
        ...


def analyse(source: str, variables: Mapping[str, Type]) -> Checked:
    """Parse and type-check; raises BadExpression with the framed report."""
    try:
        return check(source, parse(source), variables, KUBERNETES)
    except (TooDeep, RecursionError):
        raise BadExpression(source, [Issue(0, "expression is nested too deeply")]) from None


def prepare(checked: Checked, variables: Sequence[str]) -> Runner:
    """``variables`` fixes the order in which ``run`` takes their values; raises BadProgram."""
    return compile_tree(checked, variables)
