"""Which checks of metadata the strategy of a built-in kind makes when an object is updated.

Read by ``BuiltinStrategy.metadata_update_errors``. The generic checks of every kind come first, so
an error is reported once more for each check here, as upstream does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from instar.kube.schema.metadata.rules import MetadataCheck

_Place = tuple[str, str]
"""Group and kind."""
_Checks = Sequence[MetadataCheck]

_UPDATE: _Checks = (MetadataCheck.UPDATE,)
_WHOLE: _Checks = (MetadataCheck.WHOLE,)
_UPDATE_WHOLE: _Checks = (MetadataCheck.UPDATE, MetadataCheck.WHOLE)
_WHOLE_UPDATE: _Checks = (MetadataCheck.WHOLE, MetadataCheck.UPDATE)
_ADMISSION = "admissionregistration.k8s.io"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_RESOURCE = "resource.k8s.io"
_STORAGE = "storage.k8s.io"

_KINDS: Mapping[_Checks, Sequence[_Place]] = {
    (): (("policy", "PodDisruptionBudget"), ("", "Event")),
    _WHOLE: (
        ("", "LimitRange"),
        ("discovery.k8s.io", "EndpointSlice"),
        (_FLOW_CONTROL, "FlowSchema"),
        (_FLOW_CONTROL, "PriorityLevelConfiguration"),
        (_STORAGE, "CSINode"),
        (_STORAGE, "VolumeAttachment"),
        (_ADMISSION, "MutatingWebhookConfiguration"),
        (_ADMISSION, "ValidatingWebhookConfiguration"),
        (_ADMISSION, "MutatingAdmissionPolicy"),
        (_ADMISSION, "MutatingAdmissionPolicyBinding"),
        (_ADMISSION, "ValidatingAdmissionPolicy"),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    ),
    _UPDATE_WHOLE: (
        ("", "ConfigMap"),
        ("", "Endpoints"),
        ("", "Pod"),
        ("", "Secret"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("apiregistration.k8s.io", "APIService"),
        ("networking.k8s.io", "Ingress"),
        ("networking.k8s.io", "IngressClass"),
        (_STORAGE, "VolumeAttributesClass"),
    ),
    _WHOLE_UPDATE: (
        ("", "Namespace"),
        ("", "Node"),
        ("batch", "Job"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("networking.k8s.io", "IPAddress"),
        ("node.k8s.io", "RuntimeClass"),
        (_RBAC, "ClusterRole"),
        (_RBAC, "ClusterRoleBinding"),
        (_RBAC, "Role"),
        (_RBAC, "RoleBinding"),
        (_RESOURCE, "DeviceClass"),
        (_RESOURCE, "ResourceClaim"),
        (_RESOURCE, "ResourceClaimTemplate"),
        (_STORAGE, "CSIStorageCapacity"),
        (_STORAGE, "StorageClass"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    ),
    (*_WHOLE, *_WHOLE): (("", "PersistentVolume"),),
}
"""Kinds that are not listed make the check of an update only."""
_OF_KIND = {place: checks for checks, places in _KINDS.items() for place in places}
_OF_STATUS: Mapping[_Place, _Checks] = {
    ("policy", "PodDisruptionBudget"): (),
    (_FLOW_CONTROL, "FlowSchema"): (),
    (_FLOW_CONTROL, "PriorityLevelConfiguration"): (),
    (_ADMISSION, "ValidatingAdmissionPolicy"): (),
    ("certificates.k8s.io", "CertificateSigningRequest"): _WHOLE_UPDATE,
}
"""The same for writes to ``status``."""


def update_checks(place: _Place) -> _Checks:
    return _OF_KIND.get(place, _UPDATE)


def status_checks(place: _Place) -> _Checks:
    return _OF_STATUS.get(place, _UPDATE)
