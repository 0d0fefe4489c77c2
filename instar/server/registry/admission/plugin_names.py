"""Admission plugins by upstream's names: which there are, are on, and do something here.

Knows names alone, so that a command line can be read without loading a plugin.
"""

from __future__ import annotations

from collections.abc import Iterable

CRD_PROTECTION = "CustomResourceDefinitionProtection"
"""Ours: upstream has no such plugin."""

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
"""On unless somebody turns them off."""

ON_REQUEST = frozenset({"AlwaysAdmit", "AlwaysDeny", "OwnerReferencesPermissionEnforcement"})
ON_REQUEST |= {"ServiceAccount", CRD_PROTECTION, "EventRateLimit"}
"""``ServiceAccount`` is on upstream, where something runs the pods it prepares."""

IDLE = frozenset(
    {
        *("StorageObjectInUseProtection", "PodGroupProtection"),
        *("ClusterTrustBundleAttest", "PodGroupWorkloadExists", "NodeDeclaredFeatureValidator"),
        *("JobValidation", "PodResizeValidator", "NodeRestriction"),
    }
)
"""Accepted, and without effect here: they are on in every cluster, and what they guard (nodes,
running pods) is not there."""

UNAVAILABLE = frozenset(
    {
        *("NamespaceAutoProvision", "NamespaceExists", "LimitPodHardAntiAffinityTopology"),
        *("AlwaysPullImages", "ImagePolicyWebhook", "PodNodeSelector"),
        *("PodTolerationRestriction", "ExtendedResourceToleration", "DenyServiceExternalIPs"),
    }
)
"""Known, and refused when asked for: somebody would rely on them."""


class BadPlugins(ValueError):
    """The text is for whoever wrote the command line."""


def chosen(enabled: Iterable[str], disabled: Iterable[str], only: Iterable[str]) -> frozenset[str]:
    """The plugins that are on. ``only`` is all there shall be. Raises ``BadPlugins``."""
    on, off, alone = list(enabled), list(disabled), list(only)
    for flag, names in (
        ("enable-admission-plugins", on),
        ("disable-admission-plugins", off),
        ("admission", alone),
    ):
        for name in names:
            if name not in HERE | ON_REQUEST | IDLE | UNAVAILABLE:
                raise BadPlugins(f'{flag} plugin "{name}" is unknown')
    for name in on:
        if name in off:
            raise BadPlugins(
                f'["{name}"] in enable-admission-plugins and disable-admission-plugins overlapped'
            )
    missing = sorted({*on, *alone} & UNAVAILABLE)
    if missing:
        raise BadPlugins(f"{missing[0]} is no plugin of this server")
    base = frozenset(alone) if alone else HERE
    return (base | frozenset(on)) - frozenset(off)
