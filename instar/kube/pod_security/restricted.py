"""Checks of the level ``restricted``: hardening that well-behaved workloads can meet.

``evaluation.py`` lists them with the versions they apply to and the baseline checks they replace.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.pod_security.baseline import bad_seccomp_setters
from instar.kube.pod_security.pod_view import (
    PodView,
    Violation,
    containers_named,
    context_of,
    names_where,
    plural,
    quote_names,
    setters,
)

_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    }
)
_OTHER_VOLUMES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi"),
    *("glusterfs", "rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile"),
    *("vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume"),
    *("scaleIO", "storageos"),
)
_NOT_ROOT = "runAsNonRoot != true"


def privilege_escalation(pod: PodView) -> Violation | None:
    names = names_where(
        pod, lambda item: context_of(item).get("allowPrivilegeEscalation") is not False
    )
    if not names:
        return None
    return Violation(
        "allowPrivilegeEscalation != false",
        f"{containers_named(names)} must set securityContext.allowPrivilegeEscalation=false",
    )


def dropped_capabilities(pod: PodView) -> Violation | None:
    added: set[str] = set()

    def keeps_some(container: Object) -> bool:
        return "ALL" not in ((context_of(container).get("capabilities") or {}).get("drop") or ())

    def adds_others(container: Object) -> bool:
        wanted = (context_of(container).get("capabilities") or {}).get("add") or ()
        bad = {str(name) for name in wanted} - {"NET_BIND_SERVICE"}
        added.update(bad)
        return bool(bad)

    keeping, adding = names_where(pod, keeps_some), names_where(pod, adds_others)
    details = []
    if keeping:
        details.append(
            f'{containers_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'
        )
    if adding:
        details.append(
            f"{containers_named(adding)} must not include {quote_names(sorted(added))} in "
            "securityContext.capabilities.add"
        )
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def volume_types(pod: PodView) -> Violation | None:
    bad = [volume for volume in pod.spec.get("volumes") or () if _VOLUMES.isdisjoint(volume)]
    if not bad:
        return None
    names = [str(volume.get("name", "")) for volume in bad]
    types = {next((name for name in _OTHER_VOLUMES if name in volume), "unknown") for volume in bad}
    return Violation(
        "restricted volume types",
        f"{plural(len(names), 'volume')} {quote_names(names)} {plural(len(names), 'uses', 'use')} "
        f"{plural(len(types), 'restricted volume type')} {quote_names(sorted(types))}",
    )


def run_as_non_root(pod: PodView) -> Violation | None:
    of_pod = pod.context().get("runAsNonRoot")
    explicit = names_where(pod, lambda item: context_of(item).get("runAsNonRoot") is False)
    if of_pod is False or explicit:
        return Violation(
            _NOT_ROOT,
            f"{setters(of_pod is False, explicit)} must not set securityContext.runAsNonRoot=false",
        )
    silent = names_where(pod, lambda item: context_of(item).get("runAsNonRoot") is None)
    if of_pod or not silent:
        return None
    return Violation(
        _NOT_ROOT, f"pod or {containers_named(silent)} must set securityContext.runAsNonRoot=true"
    )


def run_as_user(pod: PodView) -> Violation | None:
    def is_root(context: Object) -> bool:
        user = context.get("runAsUser")
        return user is not None and int(user) == 0

    pod_is_bad = is_root(pod.context())
    names = names_where(pod, lambda item: is_root(context_of(item)))
    if not (pod_is_bad or names):
        return None
    return Violation("runAsUser=0", f"{setters(pod_is_bad, names)} must not set runAsUser=0")


def seccomp_profile(pod: PodView) -> Violation | None:
    wrong = bad_seccomp_setters(pod)
    if wrong is not None:
        return wrong
    silent = names_where(pod, lambda item: context_of(item).get("seccompProfile") is None)
    if pod.context().get("seccompProfile") is not None or not silent:
        return None
    return Violation(
        "seccompProfile",
        f"pod or {containers_named(silent)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"',
    )
