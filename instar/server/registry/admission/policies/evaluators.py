"""Policy evaluators, created by ``plugin.py`` when the first policy is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.server.registry.admission.policies.mutating import MutatingPolicies
from instar.server.registry.admission.policies.permissions import check_permissions
from instar.server.registry.admission.policies.validating import ValidatingPolicies
from instar.server.registry.admission.request_view import RequestViews
from instar.server.registry.resources.admission import Operation

if TYPE_CHECKING:
    from instar.server.registry.admission.policies.plugin import Policies


class PolicyEvaluators:
    def __init__(self, policies: Policies) -> None:
        params = policies.home.params(policies.of_kind)
        subjects = RequestViews(
            policies.home, policies.authorizer, strict=policies.strict_namespaces
        )
        metrics = policies.metrics
        self._policies, self._params = policies, params
        self._validating = ValidatingPolicies(policies.validating, subjects, params, metrics)
        self._mutating = MutatingPolicies(policies.mutating, subjects, params, metrics)

    async def validate(self, operation: Operation) -> None:
        await self._validating.validate(operation)

    async def mutate(self, operation: Operation) -> None:
        await self._mutating.mutate(operation)

    async def check_permissions(self, operation: Operation) -> None:
        authorizer = self._policies.authorizer
        await check_permissions(operation, authorizer, self._params, self._policies)
