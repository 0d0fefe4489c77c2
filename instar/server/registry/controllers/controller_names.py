"""Controllers by kube-controller-manager's names: which there are, and which of them run here.

``instar serve --controllers`` is read with it; ``lifecycle/controller_setup.py`` makes the chosen
ones. The module has names only, so that a command line can be read without loading a controller.
The controllers of kube-apiserver itself (CRDs, APIServices, bootstrap roles, leases) have no name
here and always run.
"""

from __future__ import annotations

from collections.abc import Sequence

NAMESPACES = "namespace-controller"
GARBAGE = "garbage-collector-controller"
QUOTAS = "resourcequota-controller"
ACCOUNTS = "serviceaccount-controller"
ROOT_CA = "root-ca-certificate-publisher-controller"
ROLE_AGGREGATION = "clusterrole-aggregation-controller"
POLICY_STATUS = "validatingadmissionpolicy-status-controller"
MIGRATIONS = "storage-version-migrator-controller"
CLAIM_PROTECTION = "persistentvolumeclaim-protection-controller"
VOLUME_PROTECTION = "persistentvolume-protection-controller"
CLASS_PROTECTION = "volumeattributesclass-protection-controller"
DISRUPTION = "disruption-controller"
ENDPOINT_MIRROR = "endpointslice-mirroring-controller"
SERVICE_RANGES = "service-cidr-controller"

CONTROLLERS_HERE = frozenset(
    {NAMESPACES, GARBAGE, QUOTAS, ACCOUNTS, ROOT_CA, ROLE_AGGREGATION, POLICY_STATUS, MIGRATIONS}
    | {CLAIM_PROTECTION, VOLUME_PROTECTION, CLASS_PROTECTION}
    | {DISRUPTION, ENDPOINT_MIRROR, SERVICE_RANGES}
)
"""Controllers of this server, all on by default."""

_ALIASES = {
    "namespace": NAMESPACES,
    "garbagecollector": GARBAGE,
    "garbage": GARBAGE,
    "resourcequota": QUOTAS,
    "quota": QUOTAS,
    "serviceaccount": ACCOUNTS,
    "root-ca-cert-publisher": ROOT_CA,
    "root-ca": ROOT_CA,
    "clusterrole-aggregation": ROLE_AGGREGATION,
    "svm": MIGRATIONS,
    "pvc-protection": CLAIM_PROTECTION,
    "pv-protection": VOLUME_PROTECTION,
    "disruption": DISRUPTION,
    "endpointslicemirroring": ENDPOINT_MIRROR,
}
"""Former names upstream, and short ones of this server: garbage, quota, root-ca."""

_ELSEWHERE_TEXT = """
    serviceaccount-token-controller endpoints-controller endpointslice-controller
    replicationcontroller-controller
    pod-garbage-collector-controller daemonset-controller job-controller deployment-controller
    replicaset-controller horizontal-pod-autoscaler-controller
    statefulset-controller cronjob-controller certificatesigningrequest-signing-controller
    certificatesigningrequest-approving-controller certificatesigningrequest-cleaner-controller
    podcertificaterequest-cleaner-controller ttl-controller bootstrap-signer-controller
    token-cleaner-controller node-ipam-controller node-lifecycle-controller
    taint-eviction-controller device-taint-eviction-controller persistentvolume-binder-controller
    persistentvolume-attach-detach-controller persistentvolume-expander-controller
    podgroup-protection-controller ttl-after-finished-controller
    kube-apiserver-serving-clustertrustbundle-publisher-controller ephemeral-volume-controller
    storageversion-garbage-collector-controller resourceclaim-controller
    resourcepoolstatusrequest-controller legacy-serviceaccount-token-cleaner-controller
    selinux-warning-controller
    serviceaccount-token endpoint endpointslice replicationcontroller podgc
    daemonset job deployment replicaset horizontalpodautoscaling statefulset cronjob
    csrsigning csrapproving csrcleaner ttl bootstrapsigner tokencleaner nodeipam nodelifecycle
    persistentvolume-binder attachdetach persistentvolume-expander
    ttl-after-finished ephemeral-volume storage-version-gc resource-claim-controller
    legacy-service-account-token-cleaner
"""
_ELSEWHERE = frozenset(_ELSEWHERE_TEXT.split())
"""Controllers of kube-controller-manager that this server does not have, with former names."""


class UnknownController(ValueError):
    """The text is for the author of the command line."""


def chosen_controllers(words: Sequence[str]) -> frozenset[str]:
    """Controllers that run. ``*`` is all that are on by default, ``name`` one that is on, ``-name``
    one that is off; the first word about a controller counts. No word: none runs.

    Raises ``UnknownController``.
    """
    named: dict[str, bool] = {}
    for word in words:
        if word != "*":
            name = word.removeprefix("-")
            if name not in CONTROLLERS_HERE | _ALIASES.keys() | _ELSEWHERE:
                raise UnknownController(f'"{name}" is not in the list of known controllers')
            named.setdefault(_ALIASES.get(name, name), not word.startswith("-"))
    return frozenset(name for name in CONTROLLERS_HERE if named.get(name, "*" in words))


def absent_controllers(words: Sequence[str]) -> list[str]:
    """Wanted controllers that this server does not have."""
    return [word for word in words if word in _ELSEWHERE]
