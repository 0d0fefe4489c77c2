"""Evaluates ValidatingAdmissionPolicies: every matching policy with every binding and parameter.

Called by ``plugin.py`` through ``evaluators.py``. After evaluation this module emits warnings and
audit annotations, and rejects the request with the first denial.
"""

from __future__ import annotations

from instar.base import errors, offload
from instar.base.json_values import Object
from instar.kube.admission.evaluation import ExpressionInputs
from instar.kube.admission.expressions import (
    AUTHORIZER,
    NAMESPACE,
    REQUEST,
    REQUEST_AUTHORIZER,
    shown_namespace,
)
from instar.kube.admission.match_rules import RequestEndpoint
from instar.kube.admission.policies.enforcement import PolicyVerdict, denial
from instar.kube.admission.policies.params import ParamError
from instar.kube.admission.policies.validating import PolicyResult, ValidatingProgram
from instar.server.registry.admission.policies.definitions import (
    Binding,
    BoundPolicy,
    PolicyDefinition,
    PolicyDefinitions,
)
from instar.server.registry.admission.policies.evaluate import evaluate, program_of
from instar.server.registry.admission.policies.metrics import PolicyMetrics
from instar.server.registry.admission.policies.params import (
    ParamKind,
    ParamSource,
    param_kind,
)
from instar.server.registry.admission.request_view import RequestView, RequestViews, refused_name
from instar.server.registry.resources.admission import Operation


class ValidatingPolicies:
    def __init__(
        self,
        bound: BoundPolicy,
        subjects: RequestViews,
        params: ParamSource,
        metrics: PolicyMetrics,
    ) -> None:
        self._bound, self._subjects, self._params = bound, subjects, params
        self._checks = metrics.validating

    async def validate(self, operation: Operation) -> None:
        hooks = self._bound.concerning(operation)
        if not hooks:
            return
        subject = self._subjects.of(operation, validating=True)
        verdict, breaks = PolicyVerdict(), offload.Breaks()
        for hook in hooks:
            endpoint = await subject.means(hook.policy.criteria)
            if endpoint is not None:
                await self._evaluate_policy(hook, subject, endpoint, verdict)
            await breaks.between()
        if verdict.counted or verdict.annotations or verdict.refusals:
            self._apply_verdict(operation, verdict)

    def _apply_verdict(self, operation: Operation, verdict: PolicyVerdict) -> None:
        for text in verdict.warnings:
            operation.warn(text)
        for key, value in verdict.annotations.items():
            operation.annotate(key, value)
        for counted in verdict.counted:
            self._checks.observe(*counted)
        if verdict.refusals:
            raise _denied(operation, verdict)

    async def _evaluate_policy(
        self,
        hook: PolicyDefinitions,
        subject: RequestView,
        endpoint: RequestEndpoint,
        verdict: PolicyVerdict,
    ) -> None:
        policy, kind = hook.policy, None
        if policy.param_kind is not None:
            try:
                kind = await param_kind(self._params, policy.param_kind)
            except ParamError as error:
                if not policy.ignores:
                    verdict.misconfigured(policy.name, None, str(error))
                return
        outcomes: list[PolicyResult] = []
        for binding in hook.bindings:
            if binding.criteria is not None and await subject.means(binding.criteria) is None:
                continue
            try:
                found = await self._outcomes(policy, binding, kind, subject, endpoint)
            except ParamError as error:
                if not policy.ignores:
                    verdict.misconfigured(policy.name, binding.name, str(error))
                continue
            for outcome in found:
                verdict.take(policy.name, binding.name, binding.actions, outcome)
            outcomes += found
        if outcomes:
            verdict.annotate(policy.name, outcomes)

    async def _outcomes(
        self,
        policy: PolicyDefinition,
        binding: Binding,
        kind: ParamKind | None,
        subject: RequestView,
        endpoint: RequestEndpoint,
    ) -> list[PolicyResult]:
        """Return one result per matching parameter; raises ``ParamError``."""
        params: list[Object | None] = [None]
        if kind is not None and binding.param_ref is not None:
            namespace = subject.asked.namespace
            params = [*await kind.collect(binding.param_ref, namespace)]
        found: list[PolicyResult] = []
        if not params:
            return found
        program = await program_of(policy, ValidatingProgram)
        inputs = await inputs_for(subject, endpoint, program.reads)
        breaks = offload.Breaks()
        for each in params:
            given = inputs if each is None else inputs._replace(params=each)
            outcome = await evaluate(policy, given, program.validate)
            if outcome.decisions or outcome.annotations:
                found.append(outcome)
            await breaks.between()
        return found


async def inputs_for(
    subject: RequestView, endpoint: RequestEndpoint, reads: frozenset[str]
) -> ExpressionInputs:
    """Return the expression inputs that ``reads`` names, without params; raises ``ParamError`` if
    the object cannot be converted to the policy's version."""
    try:
        pair = await subject.at(endpoint)
    except errors.ApiError as error:
        raise ParamError(f"failed to convert object version: {error.message}") from error
    if AUTHORIZER in reads or REQUEST_AUTHORIZER in reads:
        inputs = ExpressionInputs.of(subject.values(endpoint, pair))
    else:
        inputs = ExpressionInputs(
            pair.obj, pair.old, subject.request(endpoint) if REQUEST in reads else None
        )
    if NAMESPACE not in reads:
        return inputs
    return inputs._replace(namespace=shown_namespace(await subject.namespace_object()))


def _denied(operation: Operation, verdict: PolicyVerdict) -> errors.ApiError:
    serving, name = operation.target.serving, refused_name(operation)
    generic = errors.forbidden(serving.group, serving.plural, name, "")
    described = f'{errors.qualified(serving.plural, serving.group)} "{name}"'
    return denial(verdict.refusals[0], described, generic.details or {})
