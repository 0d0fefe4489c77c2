"""Applies a validating policy's results by the binding's actions: deny, warn, audit.

Called by ``server/registry/admission/policies/validating.py``. All policies are evaluated before a
request is denied; of several denials the first is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from instar.base.errors import ApiError, Forbidden, Invalid
from instar.kube.admission.evaluation import Error
from instar.kube.admission.policies.validating import FailedValidation, PolicyResult
from instar.kube.api.encoding.json_text import encode

FAILURE_KEY: Final = "validation.policy.admission.k8s.io/validation_failure"


class PolicyDenial(NamedTuple):
    """A denial with its policy and binding; no binding if the policy itself is misconfigured."""

    policy: str
    binding: str | None
    message: str
    reason: str = ""

    def __str__(self) -> str:
        bound = "" if self.binding is None else f" with binding '{self.binding}'"
        subject = f"ValidatingAdmissionPolicy '{self.policy}'{bound}"
        return f"{subject} denied request: {self.message}"


class PolicyCounts(NamedTuple):
    """One decision under one action, for the metrics."""

    policy: str
    binding: str
    error: Error
    action: str
    seconds: float


class _TooLarge(ApiError):
    """``RequestTooLarge`` with the policy's own message."""

    code = 413
    reason = "RequestEntityTooLarge"


_BY_REASON: dict[str, type[ApiError]] = {
    "Forbidden": Forbidden,
    "RequestEntityTooLarge": _TooLarge,
}


class PolicyVerdict:
    """Collected results of all policies for one request."""

    __slots__ = ("annotations", "counted", "refusals", "warnings")

    def __init__(self) -> None:
        self.refusals: list[PolicyDenial] = []
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}
        """Audit annotations by key; each key is written once."""
        self.counted: list[PolicyCounts] = []

    def misconfigured(self, policy: str, binding: str | None, why: str) -> None:
        """Deny because the policy could not be evaluated."""
        what = "policy" if binding is None else "binding"
        self.refusals.append(PolicyDenial(policy, binding, f"failed to configure {what}: {why}"))

    def take(
        self, policy: str, binding: str, actions: Sequence[str], outcome: PolicyResult
    ) -> None:
        for decision in outcome.decisions:
            if decision.forgiven:
                self._count(policy, binding, decision, "allow")
                continue
            for action in actions:
                self._act(policy, binding, action, actions, decision)
        for annotation in outcome.annotations:
            if annotation.failure:
                self.refusals.append(PolicyDenial(policy, binding, annotation.failure))
                counted = PolicyCounts(policy, binding, Error.INVALID, "deny", 0.0)
                self.counted.append(counted)

    def _act(
        self,
        policy: str,
        binding: str,
        action: str,
        actions: Sequence[str],
        decision: FailedValidation,
    ) -> None:
        match action:
            case "Deny":
                self.refusals.append(
                    PolicyDenial(policy, binding, decision.message, decision.reason)
                )
            case "Warn":
                self.warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding "
                    f"'{binding}': {decision.message}"
                )
            case "Audit":
                self.annotations.setdefault(
                    FAILURE_KEY, _failure_text(policy, binding, actions, decision)
                )
            case _:
                return
        self._count(policy, binding, decision, action.lower())

    def _count(self, policy: str, binding: str, decision: FailedValidation, action: str) -> None:
        self.counted.append(PolicyCounts(policy, binding, decision.error, action, decision.seconds))

    def annotate(self, policy: str, outcomes: Iterable[PolicyResult]) -> None:
        """Add a policy's audit annotations over all its bindings and parameters; different
        values of one key are joined."""
        values: dict[str, dict[str, None]] = {}
        for outcome in outcomes:
            for annotation in outcome.annotations:
                if not annotation.failure:
                    values.setdefault(annotation.key, {})[annotation.value] = None
        for key, found in values.items():
            self.annotations.setdefault(f"{policy}/{key}", ", ".join(found))


def denial(refusal: PolicyDenial, described: str, details: dict[str, Any]) -> ApiError:
    """Return the error for a denied request; ``described`` names its object: ``widgets.x.io
    "a"``."""
    text = str(refusal)
    chosen = _BY_REASON.get(refusal.reason, Invalid)
    return chosen(
        f"{described} is forbidden: {text}", details={**details, "causes": [{"message": text}]}
    )


def _failure_text(
    policy: str, binding: str, actions: Sequence[str], decision: FailedValidation
) -> str:
    found = {
        "message": decision.message,
        "policy": policy,
        "binding": binding,
        "expressionIndex": decision.position,
        "validationActions": list(actions),
    }
    return encode([found]).decode()
