"""Evaluates admission expressions within cost and time limits.

Called by ``policies/validating.py``, ``policies/mutating.py`` and ``match_conditions.py``. A phase
(match conditions, validations, annotations, one mutation) shares one cost budget and one set of
variables, as upstream does; variables are computed on first use and charged to the phase.

On the event loop the time limit is short. ``TooLongForLoop`` means that more is needed: the caller
discards the work and repeats it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from time import thread_time
from typing import Any, Final, NamedTuple

from instar.kube.admission.compile import AdmissionExpression
from instar.kube.admission.expressions import (
    AUTHORIZER,
    NAMESPACE,
    OBJECT,
    OLD_OBJECT,
    ORDER,
    PARAMS,
    REQUEST,
    REQUEST_AUTHORIZER,
    VARIABLES,
    VARIABLES_TYPE,
)
from instar.kube.cel.library.authorizer import (
    CelAuthorizer,
    CelAuthzDecision,
    CelAuthzQuestion,
    ResourceCheck,
)
from instar.kube.cel.values import CelError, CostExceeded, LazyValue

CALL_LIMIT: Final = 1_000_000
PHASE_BUDGET: Final = 10_000_000
CONDITIONS_BUDGET: Final = 2_500_000
LOOP_TIME: Final = 0.005
"""Seconds on the event loop; a policy on one object usually takes a thousandth of it."""
TIME_LIMIT: Final = 5.0
"""Seconds of processor time for one policy on one object, in case work takes longer than its
estimated cost."""
_LOOK_EVERY = 20_000
"""Cost units between two checks of the clock: some milliseconds."""
_AT_ONCE = -1.0
"""A deadline in the past, which the first check of the clock finds exceeded."""
_VARIABLES_AT = ORDER.index(VARIABLES)
_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class Error(StrEnum):
    """Category of a failed evaluation."""

    COMPILE = "compile_error"
    INVALID = "invalid_error"
    BUDGET = "out_of_budget"


class Failed(NamedTuple):
    """The result of an expression that could not be evaluated."""

    text: str
    error: Error = Error.INVALID


class OutOfBudget(Exception):
    """The phase's budget is exceeded; no further expression runs."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


class TooLongForLoop(Exception):
    """The evaluation takes too long for the event loop."""


class ExpressionInputs(NamedTuple):
    """Input values of expressions. ``None`` is CEL's null."""

    obj: Any
    old: Any
    request: Mapping[str, Any] | None
    params: Any = None
    namespace: Any = None
    authorizer: CelAuthorizer | None = None
    of_request: ResourceCheck | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ExpressionInputs:
        """Build from values by name; absent ones are null."""
        get = values.get
        return cls(
            get(OBJECT),
            get(OLD_OBJECT),
            get(REQUEST),
            get(PARAMS),
            get(NAMESPACE),
            get(AUTHORIZER),
            get(REQUEST_AUTHORIZER),
        )

    def values(self) -> list[Any]:
        """Return the values in the order that expressions take them; the last one is the
        variables."""
        return [
            self.obj,
            self.old,
            self.request,
            self.params,
            self.namespace,
            self.authorizer or _UNBOUND,
            self.of_request or _UNBOUND_CHECK,
            None,
        ]

    def without_authorizer(self) -> ExpressionInputs:
        return self._replace(authorizer=None, of_request=None)


def _unbound(name: str) -> Callable[[CelAuthzQuestion], CelAuthzDecision]:
    def decide(_question: CelAuthzQuestion) -> CelAuthzDecision:
        raise CelError(f"no such attribute(s): {name}")

    return decide


_UNBOUND = CelAuthorizer(_unbound("authorizer"))
_UNBOUND_CHECK = ResourceCheck(_unbound("authorizer.requestResource"), CelAuthzQuestion(""))


class Meter:
    """Cost and time limits of one policy on one object."""

    __slots__ = ("_deadline", "_hurried", "_next_look", "_spent")

    def __init__(self, *, hurried: bool = True, asks: bool = False) -> None:
        """``hurried``: on the event loop. ``asks``: expressions call the authorizer, which has a
        high cost but is fast, so only the clock limits it. Otherwise the cost does, and the
        clock is not read.
        """
        self._hurried = hurried
        self._spent, self._next_look = 0, _LOOK_EVERY
        self._deadline = _AT_ONCE
        if not hurried or asks:
            self._deadline = thread_time() + (LOOP_TIME if hurried else TIME_LIMIT)

    def run(self, expression: AdmissionExpression, values: Sequence[Any]) -> tuple[Any, int]:
        """Return the value, or the ``CelError``, and the cost. Raises ``TooLongForLoop``."""
        runner = expression.runner
        assert runner is not None
        try:
            value, cost = runner.run(values, CALL_LIMIT, self._deadline)
        except CostExceeded as exceeded:
            self._look()
            value, cost = CelError(str(exceeded)), max(exceeded.cost, CALL_LIMIT)
        self._spent += cost
        if self._spent > self._next_look:
            self._look()
        return value, cost

    def _look(self) -> None:
        self._next_look = self._spent + _LOOK_EVERY
        if self._hurried and thread_time() > self._deadline:
            raise TooLongForLoop


class CostPhase:
    """Expressions that share a budget and the values of the policy's variables."""

    __slots__ = ("_composed", "_meter", "_remaining", "_values")

    def __init__(
        self,
        meter: Meter,
        inputs: ExpressionInputs,
        variables: Mapping[str, AdmissionExpression] | None = None,
        budget: int = PHASE_BUDGET,
    ) -> None:
        self._meter, self._remaining, self._composed = meter, budget, 0
        self._values = inputs.values()
        if variables:
            computed = {name: partial(self._compute, name, variables[name]) for name in variables}
            self._values[_VARIABLES_AT] = LazyValue(computed, VARIABLES_TYPE)

    def close(self) -> None:
        """Release the variables. They refer to each other, so without this call only the garbage
        collector would free them."""
        self._values.clear()

    @property
    def remaining(self) -> int:
        return self._remaining

    def run(self, expression: AdmissionExpression) -> Any:
        """Return the value, or ``Failed``. Raises ``OutOfBudget``."""
        if expression.problem:
            return Failed(f"compilation error: {expression.problem}", Error.COMPILE)
        value, cost = self._meter.run(expression, self._values)
        cost, self._composed = cost + self._composed, 0
        if cost > self._remaining:
            raise OutOfBudget
        self._remaining -= cost
        if isinstance(value, CelError):
            return Failed(f"expression '{expression.source}' resulted in error: {value}")
        return value

    def _compute(self, name: str, variable: AdmissionExpression) -> Any:
        if variable.problem:
            raise CelError(f'composited variable "{name}" fails to compile: {variable.problem}')
        value, cost = self._meter.run(variable, self._values)
        self._composed += cost
        if isinstance(value, CelError):
            raise CelError(f'composited variable "{name}" fails to evaluate: {value}')
        return value
