"""``CompiledNode``: a compiled syntax node with its closure and static cost; constant folding.

Used by ``interpreter.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.functions import Overload
from instar.kube.cel.go_text import go_name
from instar.kube.cel.library.standard import pattern
from instar.kube.cel.runtime import calls, field_access
from instar.kube.cel.runtime.comprehensions import LoopPart
from instar.kube.cel.runtime.dispatch import choose
from instar.kube.cel.runtime.frame import CHECK_EVERY, SPENT, Frame, Step
from instar.kube.cel.syntax.issues import BadProgram
from instar.kube.cel.values import CelError, CostExceeded, Uint

_CONVERSIONS = frozenset(
    {
        *("int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp"),
        *("dyn", "type"),
    }
)
_PRIMITIVE = frozenset((str, int, Uint, float, bool))
_PATTERNS = ("matches", "find", "findAll")


class NodeForm(Enum):
    """Kind of node in upstream's interpreter, which decides the cost of using it inside another
    node."""

    PLAIN = 1
    CONSTANT = 2
    ATTRIBUTE = 3
    """A variable with its selectors, read as a whole for one unit more than its steps."""
    CHOICE = 4
    """``c ? a : b`` with its selectors; the whole costs nothing by itself."""


class CompiledNode(NamedTuple):
    """A syntax node as a closure, with its static cost and its form."""

    step: Step
    cost: int
    form: NodeForm = NodeForm.PLAIN
    value: Any = None
    """Value of a constant."""
    height: int = 0
    """Nesting depth of closures."""

    def inner(self) -> int:
        """Cost as a branch or key, where an attribute is not read as a whole."""
        return self.cost - (self.form is NodeForm.ATTRIBUTE)

    def qualified(self) -> int:
        """Cost of being the operand of a selector: a value first becomes an attribute."""
        return self.cost + (self.form in (NodeForm.PLAIN, NodeForm.CONSTANT))


@dataclass(frozen=True, slots=True)
class Runnable:
    """A compiled expression, ready to run."""

    step: Step
    cost: int
    """Static cost of every run."""
    unset: tuple[None, ...]
    """Initial slots for loop variables."""

    def run(self, values: Sequence[Any], limit: int, deadline: float) -> tuple[Any, int]:
        """Return the value, or the CelError, and the cost. Raises CostExceeded.

        ``values`` are in the order of the declared variables.
        """
        next_check = CHECK_EVERY if limit > CHECK_EVERY else limit
        frame: Frame = [self.cost, next_check, limit, deadline, *values, *self.unset]
        result: Any
        try:
            result = self.step(frame)
        except CelError as error:
            result = error
        except CostExceeded as stopped:
            stopped.cost = frame[SPENT]
            raise
        except RecursionError:
            # Comparing very deep data exceeded Python's stack.
            raise CostExceeded(frame[SPENT]) from None
        cost = frame[SPENT]
        if cost > limit:
            raise CostExceeded(cost)
        return result, cost


def as_constant(value: Any) -> CompiledNode:
    return CompiledNode(field_access.constant(value), 0, NodeForm.CONSTANT, value)


def height_above(parts: Sequence[CompiledNode]) -> int:
    """Return the height of a node with these parts."""
    return 1 + max((part.height for part in parts), default=0)


def loop_part(part: CompiledNode | None) -> LoopPart | None:
    """Return the node as the body or condition of a loop."""
    return None if part is None else LoopPart(part.step, part.cost, part.form is NodeForm.CONSTANT)


def _all_constant(parts: Sequence[CompiledNode]) -> bool:
    return all(part.form is NodeForm.CONSTANT for part in parts)


def _once(step: Step) -> Any:
    """Evaluate a step that reads no variable."""
    unlimited = float("inf")
    return step([0, unlimited, unlimited, unlimited])


def literal(made: Step, parts: Sequence[CompiledNode], cost: int) -> CompiledNode:
    """Compile a list or map; one of constants is a constant, created once and free."""
    if _all_constant(parts):
        try:
            return as_constant(_once(made))
        except CelError:
            return CompiledNode(made, 0)
    total = cost + sum(part.cost for part in parts)
    return CompiledNode(made, total, height=height_above(parts))


def fold_constant_call(
    overload: Overload, compiled: CompiledNode, parts: Sequence[CompiledNode]
) -> CompiledNode:
    """Evaluate a constant call such as ``duration('1s')`` at compile time; its failure fails the
    program."""
    if overload.function not in _CONVERSIONS or len(parts) != 1 or not _all_constant(parts):
        return compiled
    try:
        return as_constant(_once(compiled.step))
    except CelError as error:
        raise BadProgram(str(error)) from None


def compile_dispatch(candidates: Sequence[Overload], arguments: Sequence[Step]) -> Step:
    """Compile a call with several possible overloads; only functions with a cost by name have
    one."""
    name, only = candidates[0].function, candidates[0] if len(candidates) == 1 else None
    if only is None:
        candidates = [
            each if each.by_name else replace(each, work=None, weigh=None) for each in candidates
        ]
    return calls.dispatched_call(name, choose(candidates), arguments, only)


def compile_text_call(overload: Overload, parts: Sequence[CompiledNode]) -> Step:
    """Compile a call with two texts and a cost that depends on their lengths."""
    one, two = parts
    assert overload.work is not None
    if two.form is NodeForm.CONSTANT:
        return calls.metered_text_literal_call(overload, overload.work, one.step, two.value)
    return calls.metered_text_call(overload, overload.work, one.step, two.step)


def compiles_pattern(overload: Overload, parts: Sequence[CompiledNode]) -> bool:
    """Return whether the call has a constant pattern. Raises BadProgram for an invalid one."""
    if overload.function not in _PATTERNS or parts[1].form is not NodeForm.CONSTANT:
        return False
    try:
        pattern(parts[1].value)
    except CelError as error:
        raise BadProgram(str(error)) from None
    return True


def membership(value: Step, held: Sequence[Any]) -> Step | None:
    """Compile ``value in [constants]`` to a set lookup, if all can be hashed; bools differ from
    numbers."""
    if any(type(each) not in _PRIMITIVE for each in held):
        return None
    if all(type(each) is str for each in held):
        return calls.in_texts(value, frozenset(held))
    members = frozenset((each.__class__ is bool, each) for each in held)
    return calls.in_constants(value, members)


def refuse_bad_key(value: Any) -> None:
    if type(value) not in field_access.KEYS:
        raise BadProgram(f"invalid qualifier type: {go_name(value)}")
