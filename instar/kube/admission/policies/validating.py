"""ValidatingAdmissionPolicy as a compiled program: evaluates one object with one parameter.

Called by ``server/registry/admission/policies/validating.py`` and the reviewer. ``enforcement.py``
applies the binding's actions to the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple

from instar.kube.admission.compile import (
    BOOLEAN,
    TEXT,
    TEXT_OR_NULL,
    AdmissionExpression,
    compile_expression,
)
from instar.kube.admission.evaluation import (
    CostPhase,
    Error,
    ExpressionInputs,
    Failed,
    Meter,
    OutOfBudget,
)
from instar.kube.admission.expressions import VARIABLES, declared_variables, with_variables
from instar.kube.admission.match_conditions import read_conditions
from instar.kube.admission.policies.variables import compile_variables

MAX_MESSAGE: Final = 5 * 1024
MAX_ANNOTATION: Final = 10 * 1024


class FailedValidation(NamedTuple):
    """A validation that did not pass; passed ones are not reported."""

    position: int
    message: str
    reason: str = ""
    error: Error = Error.INVALID
    failed: bool = False
    """Whether the evaluation ended in an error instead of false."""
    forgiven: bool = False
    """An error under failure policy Ignore: it is only counted."""
    seconds: float = 0.0


class Annotation(NamedTuple):
    """An audit annotation that a policy made of one object, or why it failed."""

    key: str
    value: str = ""
    failure: str = ""
    """Set if there is no value: the request is denied with it."""


class PolicyResult(NamedTuple):
    """What the validations of a policy decided on one object."""

    decisions: list[FailedValidation]
    annotations: list[Annotation]


_NOTHING = PolicyResult([], [])


class _Validation(NamedTuple):
    condition: AdmissionExpression
    message: str
    """Used if messageExpression gives no message."""
    message_expression: AdmissionExpression | None
    reason: str


class ValidatingProgram:
    """A compiled policy, shared by all requests; has no state between them."""

    __slots__ = (
        "_annotations", "_conditions", "_ignores", "_silent", "_validations", "_variables", "reads",
    )  # fmt: skip

    def __init__(self, spec: Mapping[str, Any]) -> None:
        params = spec.get("paramKind") is not None
        names = declared_variables(params=params)
        composed = compile_variables(spec.get("variables") or (), names)
        seen = with_variables(names, composed.types)
        silent = with_variables(declared_variables(params=params, authorizer=False), composed.types)
        self._ignores = spec.get("failurePolicy") == "Ignore"
        self._conditions = read_conditions(spec.get("matchConditions"), params=params)
        self._variables = composed.expressions
        self._validations = [
            _validation(each, seen, silent) for each in spec.get("validations") or ()
        ]
        self._annotations = [
            (
                each.get("key", ""),
                compile_expression(each.get("valueExpression", ""), seen, TEXT_OR_NULL),
            )
            for each in spec.get("auditAnnotations") or ()
        ]

        told = [each.message_expression for each in self._validations if each.message_expression]
        self._silent = not told
        self.reads = self._conditions.reads.union(
            *(each.reads for each in composed.expressions.values()),
            *(each.condition.reads for each in self._validations),
            *(each.reads for each in told),
            *(expression.reads for _, expression in self._annotations),
        )
        """All variables that its expressions use; other values need not be fetched."""
        if VARIABLES not in self.reads:
            self._variables = {}

    def validate(self, meter: Meter, inputs: ExpressionInputs) -> PolicyResult:
        """Evaluate the policy. Raises ``TooLongForLoop`` on the event loop."""
        matched = self._conditions.match(meter, inputs)
        if not matched.holds:
            if not matched.errors or self._ignores:
                return _NOTHING
            return PolicyResult([self._failed(0, Failed(matched.text, matched.error), 0.0)], [])
        decisions = self._judge(meter, inputs)
        if not self._annotations:
            return PolicyResult(decisions, [])
        try:
            return PolicyResult(decisions, self._annotate(meter, inputs))
        except OutOfBudget as error:
            return PolicyResult([self._failed(0, _budget_error(error), 0.0)], [])

    def _failed(self, position: int, failure: Failed, seconds: float) -> FailedValidation:
        return FailedValidation(
            position,
            failure.text,
            error=failure.error,
            failed=True,
            forgiven=self._ignores,
            seconds=seconds,
        )

    def _judge(self, meter: Meter, inputs: ExpressionInputs) -> list[FailedValidation]:
        phase = CostPhase(meter, inputs, self._variables)
        results: list[tuple[Any, float]] = []
        passed, began = True, perf_counter()
        try:
            for validation in self._validations:
                result = phase.run(validation.condition)
                passed = passed and result is True
                ended = perf_counter()
                results.append((result, ended - began))
                began = ended
        except OutOfBudget as error:
            return [self._failed(0, _budget_error(error), 0.0)]
        finally:
            phase.close()
        if passed:
            return []
        messages = self._messages(meter, inputs, phase.remaining, results)
        found: list[FailedValidation] = []
        for position, (result, seconds) in enumerate(results):
            if isinstance(result, Failed):
                found.append(self._failed(position, result, seconds))
            elif isinstance(messages, OutOfBudget):
                failure = Failed(f"failed messageExpression: {messages}")
                found.append(self._failed(position, failure, seconds))
            elif result is not True:
                validation = self._validations[position]
                message = messages.get(position) or validation.message
                found.append(
                    FailedValidation(position, message, validation.reason, seconds=seconds)
                )
        return found

    def _messages(
        self, meter: Meter, inputs: ExpressionInputs, budget: int, results: list[tuple[Any, float]]
    ) -> dict[int, str] | OutOfBudget:
        """Return the results of messageExpressions by position. Upstream also evaluates those of
        passed validations, which only adds to the cost."""
        found: dict[int, str] = {}
        if self._silent:
            return found
        phase = CostPhase(meter, inputs.without_authorizer(), self._variables, budget)
        try:
            for position, validation in enumerate(self._validations):
                if validation.message_expression is not None:
                    text = phase.run(validation.message_expression)
                    if results[position][0] is not True:
                        found[position] = _usable(text)
        except OutOfBudget as error:
            return error
        finally:
            phase.close()
        return found

    def _annotate(self, meter: Meter, inputs: ExpressionInputs) -> list[Annotation]:
        phase = CostPhase(meter, inputs.without_authorizer(), self._variables)
        found: list[Annotation] = []
        try:
            for key, expression in self._annotations:
                value = phase.run(expression)
                if isinstance(value, Failed):
                    if not self._ignores:
                        found.append(Annotation(key, failure=value.text))
                elif isinstance(value, str) and value.strip():
                    found.append(Annotation(key, truncate_annotation(value.strip())))
        finally:
            phase.close()
        return found


def _validation(
    given: Mapping[str, Any], seen: Mapping[str, Any], silent: Mapping[str, Any]
) -> _Validation:
    source, told = given.get("expression", ""), given.get("messageExpression") or ""
    message = (given.get("message") or "").strip() or f"failed expression: {source.strip()}"
    return _Validation(
        compile_expression(source, seen, BOOLEAN),
        message,
        compile_expression(told, silent, TEXT) if told else None,
        given.get("reason") or "",
    )


def _budget_error(error: OutOfBudget) -> Failed:
    return Failed(str(error), Error.BUDGET)


def _usable(text: Any) -> str:
    """Return a message that may be shown; empty if the fallback is to be used."""
    if not isinstance(text, str):
        return ""
    text = text.strip()
    return "" if "\n" in text or len(text.encode()) > MAX_MESSAGE else text


def truncate_annotation(text: str) -> str:
    """Truncate to the maximum bytes of an annotation, at a character boundary."""
    raw = text.encode()
    return text if len(raw) <= MAX_ANNOTATION else raw[:MAX_ANNOTATION].decode(errors="ignore")
