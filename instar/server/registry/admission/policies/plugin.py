"""Admission plugin of the two policy kinds; loads the evaluators on demand.

Part of the admission chain (``server/lifecycle/admission_setup.py``). Without a bound policy, a
write costs look-ups in two empty collections.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from instar.kube.access.attributes import OURSELVES
from instar.kube.access.authorizers import Authorizer
from instar.server.registry.admission.home_views import HomeViews, KindOf
from instar.server.registry.admission.policies.definitions import (
    GROUP,
    MUTATING,
    OWN_PLURALS,
    VALIDATING,
    BoundPolicy,
)
from instar.server.registry.admission.policies.metrics import PolicyMetrics
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

if TYPE_CHECKING:
    from instar.server.registry.admission.policies.evaluators import PolicyEvaluators

_OF_ACCESS = ("authentication.k8s.io", "authorization.k8s.io")
_QUESTIONS = frozenset(
    {
        *("tokenreviews", "selfsubjectreviews", "subjectaccessreviews"),
        *("selfsubjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews"),
    }
)
"""Resources that upstream never evaluates policies for, besides policies themselves."""


class Policies:
    def __init__(
        self,
        home: HomeViews,
        authorizer: Authorizer,
        of_kind: KindOf,
        metrics: PolicyMetrics,
        *,
        strict_namespaces: bool,
    ) -> None:
        self.home, self.authorizer, self.of_kind, self.metrics = (
            home,
            authorizer,
            of_kind,
            metrics,
        )
        self.strict_namespaces = strict_namespaces
        self.validating = BoundPolicy(home.backend, VALIDATING)
        self.mutating = BoundPolicy(home.backend, MUTATING)
        self._working: PolicyEvaluators | None = None

    @property
    def active(self) -> bool:
        return bool(self.validating) or bool(self.mutating)

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        if serving.plural in _QUESTIONS and serving.group in _OF_ACCESS:
            return PluginPhases.NONE
        return PluginPhases.VALIDATE if _is_own(serving) else PluginPhases.BOTH

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        if not self.mutating or operation.verb is Verb.DELETE or operation.asked is OURSELVES:
            return None
        return self._work().mutate(operation)

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        if operation.asked is OURSELVES:
            return None
        if _is_own(operation.target.serving):
            return None if operation.obj is None else self._work().check_permissions(operation)
        return self._work().validate(operation) if self.validating else None

    def _work(self) -> PolicyEvaluators:
        if self._working is None:
            # Imported here: CEL is a fifth of a server's imports, and most servers have no policy.
            from instar.server.registry.admission.policies.evaluators import PolicyEvaluators

            self._working = PolicyEvaluators(self)
        return self._working


def _is_own(serving: Serving) -> bool:
    return serving.plural in OWN_PLURALS and serving.group == GROUP
