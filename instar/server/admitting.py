"""Which admission plugins a server has, in upstream's order and under upstream's names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from instar.access.authorizers import Authorizer
from instar.metrics import Metric
from instar.plain import Object
from instar.registry.admission.certificates import CertificateAdmission
from instar.registry.admission.classes import ClassAdmission
from instar.registry.admission.configured import LocalConfiguration
from instar.registry.admission.limits import LimitRanger
from instar.registry.admission.namespaces import NamespaceLifecycle
from instar.registry.admission.ondemand import OnDemand
from instar.registry.admission.pods import PodAdmission
from instar.registry.admission.policies.metrics import PolicyMetrics
from instar.registry.admission.policies.plugin import KindOf, Policies
from instar.registry.admission.quota import QuotaAdmission
from instar.registry.admission.resizing import ClaimResize
from instar.registry.admission.webhook_metrics import WebhookMetrics
from instar.registry.resources.admission import Admission, Interest
from instar.registry.resources.context import Uids, timestamp, utc_now
from instar.registry.stored.backend import Backend
from instar.webhooks.transport import TransportPool

if TYPE_CHECKING:
    from instar.registry.admission.calling import Caller
    from instar.registry.admission.subject import Subjects

_GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"


@dataclass(frozen=True)
class Admissions:
    """What plugins are made of."""

    backend: Backend
    authorizer: Authorizer
    transports: TransportPool
    of_kind: KindOf
    strict_namespaces: bool = True
    local: Sequence[LocalConfiguration] = ()
    """Webhooks that are functions of this process."""
    metrics: WebhookMetrics = field(default_factory=WebhookMetrics)
    policy_metrics: PolicyMetrics = field(default_factory=PolicyMetrics)

    def all_metrics(self) -> Iterable[Metric]:
        return (*self.metrics.all(), *self.policy_metrics.all())

    def plugins(self) -> list[Admission]:
        found: list[Admission] = [
            LimitRanger(self.backend),
            PodAdmission(self.backend),
            ClassAdmission(self.backend),
            ClaimResize(self.backend),
            CertificateAdmission(self.authorizer, lambda: timestamp(utc_now())),
            Policies(
                self.backend,
                self.authorizer,
                self.of_kind,
                self.policy_metrics,
                strict_namespaces=self.strict_namespaces,
            ),
            self._webhooks("mutatingwebhookconfigurations"),
            self._webhooks("validatingwebhookconfigurations"),
            QuotaAdmission(self.backend),
        ]
        if self.strict_namespaces:
            found.insert(0, NamespaceLifecycle(self.backend))
        return found

    def _webhooks(self, plural: str) -> OnDemand:
        local = list(_of_kind(self.local, plural))

        def make() -> Admission:
            # Only here: most servers never store a configuration.
            from instar.registry.admission.hooks import Hooks
            from instar.registry.admission.mutating import MutatingWebhooks
            from instar.registry.admission.validating import ValidatingWebhooks

            made = MutatingWebhooks if mutating else ValidatingWebhooks
            return made(Hooks(self.backend, plural, local), self.subjects, self._caller)

        mutating = plural.startswith("mutating")
        part = Interest.ADMIT if mutating else Interest.VALIDATE
        return OnDemand(self.backend, _GROUP, plural, part, make, always=bool(local))

    @cached_property
    def subjects(self) -> Subjects:
        # Only here: for whoever is asked about operations, see above.
        from instar.registry.admission.subject import Subjects

        return Subjects(self.backend, self.authorizer, strict=self.strict_namespaces)

    @cached_property
    def _caller(self) -> Caller:
        # Only here: see above.
        from instar.registry.admission.calling import Caller
        from instar.registry.admission.local import LocalReviews

        return Caller(self.transports, self.metrics, LocalReviews(), Uids())


def _of_kind(local: Iterable[LocalConfiguration], plural: str) -> Iterable[LocalConfiguration]:
    for each in local:
        document: Object = each.document
        if f"{str(document['kind']).lower()}s" == plural:
            yield each
