"""What a node of an expression compiles to, and which of them need not wait for a run."""

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
    """What upstream would call a node; it decides what reading it as part of another costs."""

    PLAIN = 1
    CONSTANT = 2
    ATTRIBUTE = 3
    """A variable and what follows it; read as a whole, for one unit more than its steps."""
    CHOICE = 4
    """``c ? a : b`` and what follows it; the whole costs nothing by itself."""


class CompiledNode(NamedTuple):
    step: Step
    cost: int
    form: NodeForm = NodeForm.PLAIN
    value: Any = None
    """Of a constant."""
    height: int = 0
    """Closures inside each other."""

    def inner(self) -> int:
        """The cost as a branch or key: an attribute is then not read as a whole."""
        return self.cost - (self.form is NodeForm.ATTRIBUTE)

    def qualified(self) -> int:
        """The cost of being stepped into: a value of its own becomes an attribute first."""
        return self.cost + (self.form in (NodeForm.PLAIN, NodeForm.CONSTANT))


@dataclass(frozen=True, slots=True)
class Runnable:
    step: Step
    cost: int
    """What every run costs, whatever it meets."""
    unset: tuple[None, ...]
    """Places for the variables of loops."""

    def run(self, values: Sequence[Any], limit: int, deadline: float) -> tuple[Any, int]:
        """The value, or the CelError it ended in, and the cost; raises CostExceeded.

        ``values`` come in the order the variables were declared.
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
            # Data nested so deep that comparing it takes more than the stack holds.
            raise CostExceeded(frame[SPENT]) from None
        cost = frame[SPENT]
        if cost > limit:
            raise CostExceeded(cost)
        return result, cost


def as_constant(value: Any) -> CompiledNode:
    return CompiledNode(field_access.constant(value), 0, NodeForm.CONSTANT, value)


def height_above(parts: Sequence[CompiledNode]) -> int:
    return 1 + max((part.height for part in parts), default=0)


def loop_part(part: CompiledNode | None) -> LoopPart | None:
    return None if part is None else LoopPart(part.step, part.cost, part.form is NodeForm.CONSTANT)


def _all_constant(parts: Sequence[CompiledNode]) -> bool:
    return all(part.form is NodeForm.CONSTANT for part in parts)


def _once(step: Step) -> Any:
    """The value of a step that reads no variable."""
    unlimited = float("inf")
    return step([0, unlimited, unlimited, unlimited])


def literal(made: Step, parts: Sequence[CompiledNode], cost: int) -> CompiledNode:
    """A list or map; one of constants is a constant, made once and free."""
    if _all_constant(parts):
        try:
            return as_constant(_once(made))
        except CelError:
            return CompiledNode(made, 0)
    total = cost + sum(part.cost for part in parts)
    return CompiledNode(made, total, height=height_above(parts))


def folded(
    overload: Overload, compiled: CompiledNode, parts: Sequence[CompiledNode]
) -> CompiledNode:
    """``duration('1s')`` is computed once; where that fails, so does the whole expression."""
    if overload.function not in _CONVERSIONS or len(parts) != 1 or not _all_constant(parts):
        return compiled
    try:
        return as_constant(_once(compiled.step))
    except CelError as error:
        raise BadProgram(str(error)) from None


def dispatched(candidates: Sequence[Overload], arguments: Sequence[Step]) -> Step:
    """Where several overloads could fit, only functions priced by name have their price."""
    name, only = candidates[0].function, candidates[0] if len(candidates) == 1 else None
    if only is None:
        candidates = [
            each if each.by_name else replace(each, work=None, weigh=None) for each in candidates
        ]
    return calls.dispatched(name, choose(candidates), arguments, only)


def metered_texts(overload: Overload, parts: Sequence[CompiledNode]) -> Step:
    """A call with two texts whose price depends on their lengths."""
    one, two = parts
    assert overload.work is not None
    if two.form is NodeForm.CONSTANT:
        return calls.metered_with(overload, overload.work, one.step, two.value)
    return calls.metered_texts(overload, overload.work, one.step, two.step)


def compiles_pattern(overload: Overload, parts: Sequence[CompiledNode]) -> bool:
    """Whether the call has a constant pattern; one that is none is no program."""
    if overload.function not in _PATTERNS or parts[1].form is not NodeForm.CONSTANT:
        return False
    try:
        pattern(parts[1].value)
    except CelError as error:
        raise BadProgram(str(error)) from None
    return True


def membership(value: Step, held: Sequence[Any]) -> Step | None:
    """``value in [constants]`` as a look-up, where all of them can be hashed; bools are told from
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
