"""Names of upstream's admission plugins: which exist, are on by default, and are implemented.

Read by the command line (``cli/serving/admission_flags.py``) and ``lifecycle/admission_setup.py``;
importing this module loads no plugin.
"""

from __future__ import annotations

from collections.abc import Iterable

CRD_PROTECTION = "CustomResourceDefinitionProtection"
"""Our own plugin; upstream has none like it."""

HERE = frozenset(
    {
        *("NamespaceLifecycle", "LimitRanger", "TaintNodesByCondition", "Priority"),
        *("DefaultTolerationSeconds", "DefaultStorageClass", "RuntimeClass"),
        *("DefaultIngressClass", "PodTopologyLabels", "MutatingAdmissionPolicy"),
        *("MutatingAdmissionWebhook", "PersistentVolumeClaimResize", "CertificateApproval"),
        *("CertificateSigning", "CertificateSubjectRestriction", "ValidatingAdmissionPolicy"),
        *("ValidatingAdmissionWebhook", "ResourceQuota", "PodSecurity"),
    }
)
"""On unless disabled by ``--disable-admission-plugins``."""

ON_REQUEST = frozenset({"AlwaysAdmit", "AlwaysDeny", "OwnerReferencesPermissionEnforcement"})
ON_REQUEST |= {"ServiceAccount", CRD_PROTECTION, "EventRateLimit"}
ON_REQUEST |= {"NamespaceAutoProvision", "NamespaceExists", "LimitPodHardAntiAffinityTopology"}
ON_REQUEST |= {"AlwaysPullImages", "PodNodeSelector", "PodTolerationRestriction"}
ON_REQUEST |= {"ExtendedResourceToleration", "DenyServiceExternalIPs", "ImagePolicyWebhook"}
"""Off unless enabled. ``ServiceAccount`` is on upstream, where pods run."""

IDLE = frozenset(
    {
        *("StorageObjectInUseProtection", "PodGroupProtection"),
        *("ClusterTrustBundleAttest", "PodGroupWorkloadExists", "NodeDeclaredFeatureValidator"),
        *("JobValidation", "PodResizeValidator", "NodeRestriction"),
    }
)
"""Accepted without effect: on in every cluster, but they guard nodes and running pods, which this
server does not have."""


class BadPlugins(ValueError):
    """An invalid choice of plugins; the text is shown to the user of the command line."""


def chosen(enabled: Iterable[str], disabled: Iterable[str], only: Iterable[str]) -> frozenset[str]:
    """Return the enabled plugins; with ``only``, exactly these. Raises ``BadPlugins``."""
    on, off, alone = list(enabled), list(disabled), list(only)
    for flag, names in (
        ("enable-admission-plugins", on),
        ("disable-admission-plugins", off),
        ("admission", alone),
    ):
        for name in names:
            if name not in HERE | ON_REQUEST | IDLE:
                raise BadPlugins(f'{flag} plugin "{name}" is unknown')
    for name in on:
        if name in off:
            raise BadPlugins(
                f'["{name}"] in enable-admission-plugins and disable-admission-plugins overlapped'
            )
    base = frozenset(alone) if alone else HERE
    return (base | frozenset(on)) - frozenset(off)
