"""Match conditions: whether a policy (or a webhook) is asked at all, as expressions say it.

All run, none is left out; one ``false`` decides, whatever else failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from instar.admission.policies.environment import declared
from instar.admission.policies.expressions import BOOLEAN, Expression, compile_expression
from instar.admission.policies.running import (
    CONDITIONS_BUDGET,
    Error,
    Failed,
    Inputs,
    Meter,
    OutOfBudget,
    Phase,
)


class Matched(NamedTuple):
    matches: bool
    failure: Failed | None = None
    """Set where nobody said no and somebody could not say; ``matches`` is False then."""
    refused_by: int | None = None
    """The position of the condition that said no."""


_MATCHED = Matched(True)


def compile_conditions(conditions: Iterable[Mapping[str, Any]], *, params: bool) -> Conditions:
    names = declared(params=params)
    return Conditions(
        [compile_expression(each.get("expression", ""), names, BOOLEAN) for each in conditions]
    )


class Conditions:
    __slots__ = ("_expressions",)

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._expressions = tuple(expressions)

    def match(self, meter: Meter, inputs: Inputs) -> Matched:
        if not self._expressions:
            return _MATCHED
        unplaced = inputs._replace(namespace=None)  # Upstream shows conditions no namespace.
        phase = Phase(meter, unplaced, budget=CONDITIONS_BUDGET)
        try:
            results = [phase.run(each) for each in self._expressions]
        except OutOfBudget as error:
            return Matched(False, Failed(str(error), Error.BUDGET))
        for position, result in enumerate(results):
            if result is False:
                return Matched(False, refused_by=position)
        failures = [result for result in results if isinstance(result, Failed)]
        if not failures:
            return _MATCHED
        return Matched(False, Failed(_together(failures), failures[0].error))


def _together(failures: Sequence[Failed]) -> str:
    """As Go prints errors that are collected: each once, several in brackets."""
    texts = list(dict.fromkeys(each.text for each in failures))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
