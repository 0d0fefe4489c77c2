"""Which admission plugins a server has, in upstream's order and under upstream's names."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from instar.access.authorizers import Authorizer
from instar.metrics import Metric
from instar.plain import Object
from instar.records import dataclass
from instar.registry.admission.accounts import ServiceAccountAdmission
from instar.registry.admission.always import AlwaysDeny
from instar.registry.admission.certificates import CertificateAdmission
from instar.registry.admission.classes import ClassAdmission
from instar.registry.admission.configured import LocalConfiguration
from instar.registry.admission.eventrate import EventLimit, EventRateLimit
from instar.registry.admission.limits import LimitRanger
from instar.registry.admission.names import CRD_PROTECTION, HERE
from instar.registry.admission.namespaces import NamespaceLifecycle
from instar.registry.admission.ondemand import OnDemand
from instar.registry.admission.ownerpermissions import OwnerPermissions
from instar.registry.admission.pods import PodAdmission
from instar.registry.admission.policies.metrics import PolicyMetrics
from instar.registry.admission.policies.plugin import KindOf, Policies
from instar.registry.admission.protection import CrdProtection
from instar.registry.admission.quota import QuotaAdmission
from instar.registry.admission.resizing import ClaimResize
from instar.registry.admission.webhook_metrics import WebhookMetrics
from instar.registry.resources.admission import Admission, Interest, Verb
from instar.registry.resources.context import Uids, timestamp, utc_now
from instar.registry.resources.serving import Serving
from instar.registry.stored.backend import Backend
from instar.webhooks.calls import CallLog
from instar.webhooks.transport import TransportPool

if TYPE_CHECKING:
    from instar.registry.admission.calling import Caller
    from instar.registry.admission.subject import Subjects

_GROUP = "admissionregistration.k8s.io"
_CERTIFICATES = frozenset(
    {"CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction"}
)
"""They are one here, and go together."""


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
    enabled: frozenset[str] = HERE
    """Names of plugins."""
    event_limits: Sequence[EventLimit] = ()
    metrics: WebhookMetrics = field(default_factory=WebhookMetrics)
    calls: CallLog = field(default_factory=CallLog)
    policy_metrics: PolicyMetrics = field(default_factory=PolicyMetrics)

    def all_metrics(self) -> Iterable[Metric]:
        return (*self.metrics.all(), *self.policy_metrics.all())

    def plugins(self) -> list[Admission]:
        """In upstream's order; of those that are several in one, each can be off."""
        backend, on, off = self.backend, self.enabled, HERE - self.enabled
        listed: list[tuple[bool, Admission]] = [
            (
                "NamespaceLifecycle" in on and self.strict_namespaces,
                NamespaceLifecycle(backend),
            ),
            ("LimitRanger" in on, LimitRanger(backend)),
            ("ServiceAccount" in on, ServiceAccountAdmission(backend, _named)),
            (True, PodAdmission(backend, off)),
            (True, ClassAdmission(backend, off)),
            (
                "OwnerReferencesPermissionEnforcement" in on,
                OwnerPermissions(self.authorizer, self.of_kind),
            ),
            ("PersistentVolumeClaimResize" in on, ClaimResize(backend)),
            (
                bool(_CERTIFICATES & on),
                CertificateAdmission(self.authorizer, lambda: timestamp(utc_now())),
            ),
            (True, Partly(self._policies(), self._part("AdmissionPolicy"))),
            ("MutatingAdmissionWebhook" in on, self._webhooks("mutatingwebhookconfigurations")),
            (
                "ValidatingAdmissionWebhook" in on,
                self._webhooks("validatingwebhookconfigurations"),
            ),
            ("EventRateLimit" in on, EventRateLimit(self.event_limits)),
            ("ResourceQuota" in on, QuotaAdmission(backend)),
            ("AlwaysDeny" in on, AlwaysDeny()),
            (CRD_PROTECTION in on, CrdProtection(backend)),
        ]
        return [plugin for wanted, plugin in listed if wanted]

    def _part(self, what: str) -> Interest:
        found = Interest.NONE
        if f"Mutating{what}" in self.enabled:
            found |= Interest.ADMIT
        return found | Interest.VALIDATE if f"Validating{what}" in self.enabled else found

    def _policies(self) -> Policies:
        return Policies(
            self.backend,
            self.authorizer,
            self.of_kind,
            self.policy_metrics,
            strict_namespaces=self.strict_namespaces,
        )

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

        return Caller(self.transports, self.metrics, self.calls, LocalReviews(), Uids())


def _named(beginning: str) -> str:
    return f"{beginning}{secrets.token_hex(3)[:5]}"


class Partly:
    """One of the two parts of a plugin; the other is off."""

    def __init__(self, plugin: Policies, part: Interest) -> None:
        self._part = part
        self._plugin = plugin
        self.admit, self.validate = plugin.admit, plugin.validate

    @property
    def active(self) -> bool:
        return self._plugin.active

    def interest(self, serving: Serving, verb: Verb) -> Interest:
        return self._plugin.interest(serving, verb) & self._part


def _of_kind(local: Iterable[LocalConfiguration], plural: str) -> Iterable[LocalConfiguration]:
    for each in local:
        document: Object = each.document
        if f"{str(document['kind']).lower()}s" == plural:
            yield each
