"""Formats values as upstream's internal Go types print them, for error messages that quote them.

Called by the rules of workloads and storage. The texts have Go's field names in Go's order and omit
no field. The module also formats the difference of two such texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from functools import cache
from typing import Any

from instar.base.field_errors import JSON_ESCAPED
from instar.base.json_values import Object
from instar.kube.builtin_rules.selectors import in_go_order
from instar.kube.facts.messages import MessageField, fields_of
from instar.kube.protobuf.json_forms import SCALARS, MessageShape, shape_of

_NAMES: Mapping[str, str] = {
    "dnsPolicy": "DNSPolicy", "dnsConfig": "DNSConfig", "tty": "TTY", "os": "OS",
    "fsGroup": "FSGroup", "fsGroupChangePolicy": "FSGroupChangePolicy",
    "seLinuxOptions": "SELinuxOptions", "seLinuxChangePolicy": "SELinuxChangePolicy",
    "httpGet": "HTTPGet", "tcpSocket": "TCPSocket", "grpc": "GRPC", "httpHeaders": "HTTPHeaders",
    "nfs": "NFS", "rbd": "RBD", "iscsi": "ISCSI", "fc": "FC", "csi": "CSI", "cephfs": "CephFS",
    "awsElasticBlockStore": "AWSElasticBlockStore", "gcePersistentDisk": "GCEPersistentDisk",
    "apiVersion": "APIVersion", "apiGroup": "APIGroup", "fsType": "FSType", "ip": "IP",
    "uid": "UID", "gmsaCredentialSpecName": "GMSACredentialSpecName", "iqn": "IQN",
    "gmsaCredentialSpec": "GMSACredentialSpec", "storageos": "StorageOS", "wwids": "WWIDs",
    "sslEnabled": "SSLEnabled", "diskURI": "DataDiskURI", "pdName": "PDName",
    "iscsiInterface": "ISCSIInterface", "chapAuthDiscovery": "DiscoveryCHAPAuth",
    "chapAuthSession": "SessionCHAPAuth", "monitors": "CephMonitors",
    "endpoints": "EndpointsName", "ipFamilies": "IPFamilies", "ipFamilyPolicy": "IPFamilyPolicy",
}  # fmt: skip
_RBD_NAMES = {"image": "RBDImage", "pool": "RBDPool", "user": "RadosUser"}
_VOLUME_SOURCES = (
    "hostPath", "emptyDir", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "secret", "nfs",
    "iscsi", "glusterfs", "persistentVolumeClaim", "rbd", "quobyte", "flexVolume", "cinder",
    "cephfs", "flocker", "downwardAPI", "fc", "azureFile", "configMap", "vsphereVolume",
    "azureDisk", "photonPersistentDisk", "projected", "portworxVolume", "scaleIO", "storageos",
    "csi", "ephemeral", "image",
)  # fmt: skip
_CONTAINER = (
    "name", "image", "command", "args", "workingDir", "ports", "envFrom", "env", "resources",
    "resizePolicy", "restartPolicy", "restartPolicyRules", "volumeMounts", "volumeDevices",
    "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "terminationMessagePath",
    "terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce", "tty",
)  # fmt: skip
_ISCSI = (
    "targetPortal", "iqn", "lun", "iscsiInterface", "fsType", "readOnly", "portals",
    "chapAuthDiscovery", "chapAuthSession", "secretRef", "initiatorName",
)  # fmt: skip
_ORDERS: Mapping[str, tuple[str, ...]] = {
    "PodSpec": (
        "volumes", "initContainers", "containers", "ephemeralContainers", "restartPolicy",
        "terminationGracePeriodSeconds", "activeDeadlineSeconds", "dnsPolicy", "nodeSelector",
        "serviceAccountName", "automountServiceAccountToken", "nodeName", "securityContext",
        "imagePullSecrets", "hostname", "subdomain", "setHostnameAsFQDN", "affinity",
        "schedulerName", "tolerations", "hostAliases", "priorityClassName", "priority",
        "preemptionPolicy", "dnsConfig", "readinessGates", "runtimeClassName", "overhead",
        "enableServiceLinks", "topologySpreadConstraints", "os", "schedulingGates",
        "resourceClaims", "resources", "hostnameOverride", "schedulingGroup",
    ),
    "PodSecurityContext": (
        "hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers",
        "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
        "supplementalGroups", "supplementalGroupsPolicy", "fsGroup", "fsGroupChangePolicy",
        "sysctls", "seccompProfile", "appArmorProfile", "seLinuxChangePolicy",
    ),
    "Container": _CONTAINER,
    "EphemeralContainer": (*_CONTAINER, "targetContainerName"),
    "Volume": ("name", *_VOLUME_SOURCES),
    "ISCSIVolumeSource": _ISCSI,
    "ISCSIPersistentVolumeSource": _ISCSI,
    "VolumeMount": (
        "name", "readOnly", "recursiveReadOnly", "mountPath", "subPath", "mountPropagation",
        "subPathExpr",
    ),
    "ClusterTrustBundleProjection": (
        "name", "signerName", "labelSelector", "optional", "path",
    ),
    "PersistentVolumeSpec": (
        "capacity", "gcePersistentDisk", "awsElasticBlockStore", "hostPath", "glusterfs", "nfs",
        "rbd", "quobyte", "iscsi", "flexVolume", "cinder", "cephfs", "fc", "flocker", "azureFile",
        "vsphereVolume", "azureDisk", "photonPersistentDisk", "portworxVolume", "scaleIO", "local",
        "storageos", "csi", "accessModes", "claimRef", "persistentVolumeReclaimPolicy",
        "storageClassName", "mountOptions", "volumeMode", "nodeAffinity",
        "volumeAttributesClassName",
    ),
    "ReplicationControllerSpec": ("replicas", "minReadySeconds", "selector", "template"),
    "ServiceSpec": (
        "type", "ports", "selector", "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy",
        "externalName", "externalIPs", "loadBalancerIP", "sessionAffinity",
        "sessionAffinityConfig", "loadBalancerSourceRanges", "externalTrafficPolicy",
        "healthCheckNodePort", "publishNotReadyAddresses", "allocateLoadBalancerNodePorts",
        "loadBalancerClass", "internalTrafficPolicy", "trafficDistribution",
    ),
    "ServicePort": ("name", "protocol", "appProtocol", "port", "targetPort", "nodePort"),
    "SecurityContext": (
        "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser",
        "runAsGroup", "runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation",
        "procMount", "seccompProfile", "appArmorProfile",
    ),
    "PersistentVolumeClaimSpec": (
        "accessModes", "selector", "resources", "volumeName", "storageClassName", "volumeMode",
        "dataSource", "dataSourceRef", "volumeAttributesClassName",
    ),
    "PodDisruptionBudgetSpec": (
        "minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy",
    ),
}  # fmt: skip
_OF_POD = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields that the API has in a pod's spec and upstream keeps in its security context."""
_ZEROS: Mapping[str, Any] = {"string": "", "bool": False, "bytes": None}


def internal(message: str, value: Object | None) -> Any:
    """Return the internal form; ``message`` is a type of core/v1, or a full name
    (``apps/v1#DaemonSetUpdateStrategy``)."""
    name = message if "#" in message else f"v1#{message}"
    return None if value is None else _struct(name, value)


def internal_template(template: Object) -> Object:
    """Return the internal form of a pod template; its metadata keeps the API's names."""
    metadata = template.get("metadata") or {}
    shown = {
        name: dict(sorted(metadata[name].items())) if isinstance(metadata[name], dict) else value
        for name, value in metadata.items()
    }
    return {**shown, "Spec": internal("PodSpec", template.get("spec") or {})}


def difference(old: Any, new: Any) -> str:
    """Return the difference in the format of ``diff -u``, without its header."""
    before, after = (_lines(value) for value in (old, new))
    lines = list(unified_diff(before, after, n=3, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def _lines(value: Any) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for char, escape in JSON_ESCAPED:
        text = text.replace(char, escape)
    return text.split("\n")


def _struct(message: str, value: Object) -> Object:
    own = message.partition("#")[2]
    if own == "PodSpec":
        value = _internal_spec(value)
    names = _RBD_NAMES if own.startswith("RBD") else {}
    return {
        names.get(field.name) or _go_name(field.name): _member(field, value.get(field.name))
        for field in _fields(message)
    }


def _internal_spec(spec: Object) -> Object:
    moved = {name: spec[name] for name in _OF_POD if name in spec}
    return {**spec, "securityContext": {**(spec.get("securityContext") or {}), **moved}}


@cache
def _fields(message: str) -> tuple[MessageField, ...]:
    found = {field.name: field for field in _flat(message)}
    own = message.partition("#")[2]
    if own == "PodSecurityContext":
        found |= {field.name: field for field in _flat("v1#PodSpec") if field.name in _OF_POD}
    order = _ORDERS.get(own)
    if order is None:
        return tuple(found.values())
    return tuple(found[name] for name in order if name in found)


def _flat(message: str) -> Iterator[MessageField]:
    """Yield the fields, with those of embedded messages in place."""
    for field in fields_of(message):
        if field.name:
            yield field
        else:
            yield from _flat(field.type)


def _go_name(name: str) -> str:
    return _NAMES.get(name) or name[:1].upper() + name[1:]


def _member(field: MessageField, value: Any) -> Any:
    if value is None:
        return _zero(field)
    if field.repeated:
        return [_value(field.type, item) for item in value]
    if field.mapped:
        return {key: _value(field.type, value[key]) for key in sorted(value)}
    return _value(field.type, value)


def _value(type: str, value: Any) -> Any:
    if type in SCALARS or not isinstance(value, dict):
        return value
    if type.endswith("#LabelSelector"):
        return in_go_order(value)
    return _struct(type, value) if shape_of(type) is MessageShape.OBJECT else value


def _zero(field: MessageField) -> Any:
    if field.repeated or field.mapped or not field.always:
        return None
    if field.type not in SCALARS:
        return _struct(field.type, {}) if shape_of(field.type) is MessageShape.OBJECT else None
    return _ZEROS.get(field.type, 0)
