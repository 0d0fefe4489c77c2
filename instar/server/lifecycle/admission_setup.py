"""The admission chain of a server: its plugins, in kube-apiserver's order and under its names.

``composition.py`` makes it once; every write goes through the chain. The plugins are in
``registry/admission``.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.metrics import Metric
from instar.kube.access.authorizers import Authorizer
from instar.server.registry.admission.home_views import HomeViews, KindOf
from instar.server.registry.admission.lazy_plugin import LazyPlugin
from instar.server.registry.admission.plugin_configurations import PluginConfigurations
from instar.server.registry.admission.plugin_names import CRD_PROTECTION, HERE
from instar.server.registry.admission.plugins.always_deny import AlwaysDenyPlugin
from instar.server.registry.admission.plugins.certificate_signing import CertificateAdmission
from instar.server.registry.admission.plugins.crd_protection import CrdProtection
from instar.server.registry.admission.plugins.derived_defaults import ClassAdmission
from instar.server.registry.admission.plugins.event_rate_limit import EventRateLimit
from instar.server.registry.admission.plugins.external_ips import DenyServiceExternalIPs
from instar.server.registry.admission.plugins.image_policy import ImagePolicyWebhook, Post
from instar.server.registry.admission.plugins.image_pull import AlwaysPullImages
from instar.server.registry.admission.plugins.limit_ranger import LimitRanger
from instar.server.registry.admission.plugins.namespace_existence import (
    CreateNamespace,
    NamespaceAutoProvision,
    NamespaceExists,
)
from instar.server.registry.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from instar.server.registry.admission.plugins.owner_reference_permissions import OwnerPermissions
from instar.server.registry.admission.plugins.pod_defaults import PodAdmission
from instar.server.registry.admission.plugins.pod_placement import (
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    PodNodeSelector,
)
from instar.server.registry.admission.plugins.pod_security import PodSecurity
from instar.server.registry.admission.plugins.pod_tolerations import PodTolerationRestriction
from instar.server.registry.admission.plugins.pvc_resize import ClaimResize
from instar.server.registry.admission.plugins.quota.quota_by_status import StatusQuotaAdmission
from instar.server.registry.admission.plugins.quota.resource_quota import QuotaAdmission
from instar.server.registry.admission.plugins.service_account import ServiceAccountAdmission
from instar.server.registry.admission.policies.metrics import PolicyMetrics
from instar.server.registry.admission.policies.plugin import Policies
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration
from instar.server.registry.admission.webhooks.metrics import AdmissionWebhookMetrics
from instar.server.registry.resources.admission import AdmissionPlugin, PluginPhases, Verb
from instar.server.registry.resources.context import Uids, timestamp, utc_now
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.wire.webhooks.call_log import CallLog
from instar.wire.webhooks.transport import TransportPool

if TYPE_CHECKING:
    from instar.server.registry.admission.request_view import RequestViews
    from instar.server.registry.admission.webhooks.call import WebhookCaller

_GROUP = "admissionregistration.k8s.io"
_CERTIFICATES = frozenset(
    {"CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction"}
)
"""One plugin here: it is on if any of these is enabled."""


@dataclass(frozen=True)
class Admissions:
    """Makes the plugins, from the components they need."""

    backend: Backend
    home: HomeViews
    authorizer: Authorizer
    transports: TransportPool
    of_kind: KindOf
    create_namespace: CreateNamespace
    strict_namespaces: bool = True
    local: Sequence[LocalConfiguration] = ()
    """Admission webhooks that are Python functions in this process."""
    enabled: frozenset[str] = HERE
    """Names of the enabled plugins."""
    counts_quotas: bool = True
    """Whether the quota controller runs; without it quotas limit what their status says."""
    configurations: PluginConfigurations = field(default_factory=PluginConfigurations)
    image_reviews: Post | None = None
    """Asks the webhook of ImagePolicyWebhook."""
    metrics: AdmissionWebhookMetrics = field(default_factory=AdmissionWebhookMetrics)
    calls: CallLog = field(default_factory=CallLog)
    policy_metrics: PolicyMetrics = field(default_factory=PolicyMetrics)

    def all_metrics(self) -> Iterable[Metric]:
        return (*self.metrics.all(), *self.policy_metrics.all())

    def plugins(self) -> list[AdmissionPlugin]:
        """Enabled plugins in kube-apiserver's order. Some contain several of its plugins, each of
        which can be disabled."""
        backend, on, off = self.home.backend, self.enabled, HERE - self.enabled
        given = self.configurations
        listed: list[tuple[bool, AdmissionPlugin]] = [
            (
                "NamespaceAutoProvision" in on,
                NamespaceAutoProvision(backend, self.create_namespace),
            ),
            (
                "NamespaceLifecycle" in on and self.strict_namespaces,
                NamespaceLifecycle(self.home),
            ),
            ("NamespaceExists" in on, NamespaceExists(backend)),
            ("LimitPodHardAntiAffinityTopology" in on, LimitPodHardAntiAffinityTopology()),
            ("LimitRanger" in on, LimitRanger(backend)),
            ("ServiceAccount" in on, ServiceAccountAdmission(backend, _random_name)),
            ("AlwaysPullImages" in on, AlwaysPullImages()),
            *self._image_policy(),
            ("PodSecurity" in on, PodSecurity(backend, given.pod_security)),
            ("PodNodeSelector" in on, PodNodeSelector(backend, given.node_selectors)),
            (True, PodAdmission(backend, off)),
            (
                "PodTolerationRestriction" in on,
                PodTolerationRestriction(backend, given.tolerations),
            ),
            ("ExtendedResourceToleration" in on, ExtendedResourceToleration()),
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
            ("DenyServiceExternalIPs" in on, DenyServiceExternalIPs()),
            (True, PluginPart(self._policies(), self._part("AdmissionPolicy"))),
            ("MutatingAdmissionWebhook" in on, self._webhooks("mutatingwebhookconfigurations")),
            (
                "ValidatingAdmissionWebhook" in on,
                self._webhooks("validatingwebhookconfigurations"),
            ),
            ("EventRateLimit" in on, EventRateLimit(given.event_limits)),
            ("ResourceQuota" in on, self._quotas()),
            ("AlwaysDeny" in on, AlwaysDenyPlugin()),
            (CRD_PROTECTION in on, CrdProtection(backend)),
        ]
        return [*self.home.plugins(), *(plugin for wanted, plugin in listed if wanted)]

    def _image_policy(self) -> list[tuple[bool, AdmissionPlugin]]:
        policy, ask = self.configurations.image_policy, self.image_reviews
        if policy is None or ask is None:
            return []
        return [(True, ImagePolicyWebhook(policy, ask))]

    def _quotas(self) -> AdmissionPlugin:
        if self.counts_quotas:
            return QuotaAdmission(self.backend, self.home.backend)
        return StatusQuotaAdmission(self.backend, self.of_kind)

    def _part(self, what: str) -> PluginPhases:
        found = PluginPhases.NONE
        if f"Mutating{what}" in self.enabled:
            found |= PluginPhases.ADMIT
        return found | PluginPhases.VALIDATE if f"Validating{what}" in self.enabled else found

    def _policies(self) -> Policies:
        return Policies(
            self.home,
            self.authorizer,
            self.of_kind,
            self.policy_metrics,
            strict_namespaces=self.strict_namespaces,
        )

    def _webhooks(self, plural: str) -> LazyPlugin:
        local = list(_of_kind(self.local, plural))

        def make() -> AdmissionPlugin:
            # Imported here: most servers never store a webhook configuration.
            from instar.server.registry.admission.webhooks.configured import Hooks
            from instar.server.registry.admission.webhooks.mutating import MutatingWebhooks
            from instar.server.registry.admission.webhooks.validating import ValidatingWebhooks

            made = MutatingWebhooks if mutating else ValidatingWebhooks
            return made(Hooks(self.home.backend, plural, local), self.subjects, self._caller)

        mutating = plural.startswith("mutating")
        part = PluginPhases.ADMIT if mutating else PluginPhases.VALIDATE
        return LazyPlugin(self.home.backend, _GROUP, plural, part, make, always=bool(local))

    @cached_property
    def subjects(self) -> RequestViews:
        # Imported here: only webhooks and policies need it.
        from instar.server.registry.admission.request_view import RequestViews

        return RequestViews(self.home, self.authorizer, strict=self.strict_namespaces)

    @cached_property
    def _caller(self) -> WebhookCaller:
        # Imported here: only servers with webhook configurations need it.
        from instar.server.registry.admission.webhooks.call import WebhookCaller
        from instar.server.registry.admission.webhooks.in_process_call import LocalReviews

        return WebhookCaller(self.transports, self.metrics, self.calls, LocalReviews(), Uids())


def _random_name(beginning: str) -> str:
    return f"{beginning}{secrets.token_hex(3)[:5]}"


class PluginPart:
    """The mutating or the validating part of a plugin; its other part is disabled."""

    def __init__(self, plugin: Policies, part: PluginPhases) -> None:
        self._part = part
        self._plugin = plugin
        self.admit, self.validate = plugin.admit, plugin.validate

    @property
    def active(self) -> bool:
        return self._plugin.active

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return self._plugin.interest(serving, verb) & self._part


def _of_kind(local: Iterable[LocalConfiguration], plural: str) -> Iterable[LocalConfiguration]:
    for each in local:
        document: Object = each.document
        if f"{str(document['kind']).lower()}s" == plural:
            yield each
