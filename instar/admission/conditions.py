"""Match conditions: expressions that say whether a webhook or a policy wants a request at all.

Each is compiled once. All are evaluated, whatever the others say: one that is false outweighs
one that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import thread_time
from typing import Any, NamedTuple

from instar import offload
from instar.admission.expressions import VARIABLES
from instar.cel.engine import BadExpression, BadProgram, Runner, analyse, prepare
from instar.cel.types import DYN, Type
from instar.cel.values import CelError, CostExceeded

CALL_LIMIT = 1_000_000
"""Cost of one expression."""
BUDGET = 2_500_000
"""Cost of all conditions of a webhook or policy together."""
QUICK_LIMIT = 20_000
"""Cost up to which an expression may run in the event loop."""
SECONDS = 5.0
_TOO_COSTLY = "operation cancelled: actual cost limit exceeded"
_NO_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class Matched(NamedTuple):
    """Whether all conditions hold; ``errors`` only where none is known to be false."""

    holds: bool
    errors: tuple[str, ...] = ()


class _Compiled(NamedTuple):
    text: str
    runner: Runner | None
    problem: str = ""


@lru_cache(maxsize=1024)
def _compiled(text: str, params: bool) -> _Compiled:
    variables: Mapping[str, Type] = {**VARIABLES, "params": DYN} if params else VARIABLES
    try:
        return _Compiled(text, prepare(analyse(text, variables), tuple(variables)))
    except (BadExpression, BadProgram) as error:
        return _Compiled(text, None, f"compilation error: compilation failed: {error}")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Those of one webhook or policy; falsy when there are none."""

    expressions: tuple[str, ...]
    params: bool = False

    def __bool__(self) -> bool:
        return bool(self.expressions)

    async def matched(self, values: Mapping[str, Any]) -> Matched:
        """``values`` by variable; absent ones are null."""
        names = (*VARIABLES, "params") if self.params else tuple(VARIABLES)
        given = [values.get(name) for name in names]
        compiled = [_compiled(text, self.params) for text in self.expressions]
        try:
            return _evaluate(compiled, given, QUICK_LIMIT, QUICK_LIMIT)
        except _Slow:
            return await offload.apart(lambda: _finished(compiled, given))


def read_conditions(listed: Iterable[Mapping[str, Any]] | None, *, params: bool) -> Conditions:
    return Conditions(tuple(str(each.get("expression", "")) for each in listed or ()), params)


class _Slow(Exception):
    """More work than the event loop has time for."""


def _finished(compiled: Sequence[_Compiled], values: Sequence[Any]) -> Matched:
    try:
        return _evaluate(compiled, values, CALL_LIMIT, BUDGET)
    except _Slow:
        return Matched(False, (_NO_BUDGET,))


def _evaluate(
    compiled: Sequence[_Compiled], values: Sequence[Any], limit: int, budget: int
) -> Matched:
    refused, problems = False, list[str]()
    deadline = thread_time() + SECONDS
    for text, runner, problem in compiled:
        if runner is None:
            problems.append(problem)
            continue
        try:
            value, cost = runner.run(values, min(limit, budget), deadline)
        except CostExceeded:
            if limit == QUICK_LIMIT or budget < limit:
                raise _Slow from None
            problems.append(f"expression '{text}' resulted in error: {_TOO_COSTLY}")
            budget -= limit
            continue
        budget -= cost
        if isinstance(value, CelError):
            problems.append(f"expression '{text}' resulted in error: {value}")
        elif value is not True:
            refused = True
    if refused:
        return Matched(False)
    return Matched(not problems, tuple(problems))
