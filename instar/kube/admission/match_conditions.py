"""Match conditions: CEL expressions that decide whether a webhook or policy gets a request.

Called by the policy programs, and by the webhook plugins through ``webhook_configurations.py``.
Expressions are compiled once. All conditions are evaluated; a condition that is false takes
precedence over one that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from instar.base import offload
from instar.base.fast_dataclass import dataclass
from instar.base.weighted_lru import WeightedLru
from instar.kube.admission.compile import BOOLEAN, AdmissionExpression, compile_expression
from instar.kube.admission.evaluation import (
    CostPhase,
    Error,
    ExpressionInputs,
    Failed,
    Meter,
    OutOfBudget,
    TooLongForLoop,
)
from instar.kube.admission.expressions import AUTHORIZER, declared_variables

BUDGET = 2_500_000
"""Cost budget of all conditions of a webhook or policy together."""


class Matched(NamedTuple):
    """Whether all conditions are true; ``errors`` only if none is false."""

    holds: bool
    errors: tuple[str, ...] = ()
    error: Error = Error.INVALID
    """Category of the first error."""

    @property
    def text(self) -> str:
        """Return the errors as Go prints an aggregate: each once, in brackets."""
        texts = list(dict.fromkeys(self.errors))
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


_KEPT: WeightedLru[tuple[str, bool], AdmissionExpression] = WeightedLru(1 << 20)
"""Weighed by the length of their texts: every write needs all of them, and there may be
thousands."""


def _compiled(text: str, params: bool) -> AdmissionExpression:
    found = _KEPT.get((text, params))
    if found is None:
        made = compile_expression(text, declared_variables(params=params), BOOLEAN)
        found = _KEPT.put((text, params), made, len(text))
    return found


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one webhook or policy; falsy when there are none."""

    expressions: tuple[str, ...]
    params: bool = False

    def __bool__(self) -> bool:
        return bool(self.expressions)

    @property
    def reads(self) -> frozenset[str]:
        """Return the variables that they use."""
        found = (_compiled(text, self.params).reads for text in self.expressions)
        return frozenset().union(*found)

    async def matched(self, values: Mapping[str, Any]) -> Matched:
        """Evaluate on ``values`` by variable name; absent ones are null."""
        inputs = ExpressionInputs.of(values)
        try:
            return self.match(Meter(asks=AUTHORIZER in self.reads), inputs)
        except TooLongForLoop:
            return await offload.run_in_thread(lambda: self.match(Meter(hurried=False), inputs))

    def match(self, meter: Meter, inputs: ExpressionInputs) -> Matched:
        """Evaluate with a meter. Raises ``TooLongForLoop`` on the event loop. Conditions get no
        namespace object, as upstream."""
        if not self.expressions:
            return _HOLDS
        phase = CostPhase(meter, inputs._replace(namespace=None), budget=BUDGET)
        try:
            results = [phase.run(_compiled(text, self.params)) for text in self.expressions]
        except OutOfBudget as error:
            return Matched(False, (str(error),), Error.BUDGET)
        failures = [result for result in results if isinstance(result, Failed)]
        if not failures or any(result is False for result in results):
            return Matched(all(result is True for result in results))
        return Matched(False, tuple(each.text for each in failures), failures[0].error)


_HOLDS = Matched(True)


def read_conditions(listed: Iterable[Mapping[str, Any]] | None, *, params: bool) -> Conditions:
    return Conditions(tuple(str(each.get("expression", "")) for each in listed or ()), params)
