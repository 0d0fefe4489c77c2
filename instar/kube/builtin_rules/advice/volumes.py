"""Warnings about volumes, volume claims and storage classes.

Called by ``pod_specs.py`` and ``by_kind.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.builtin_rules.advice.values import (
    expression_advice,
    fraction_advice,
    label_advice,
    selected_label_advice,
)

_IN_PODS = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""Sources of a pod's volumes in the order in which upstream looks at them."""
_IN_PERSISTENT_VOLUMES = (
    "cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd",
)  # fmt: skip
_SHOWN = {"storageos": "storageOS"}
_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_CLASS_IN_VOLUME = 'deprecated since v1.8; use "storageClassName" attribute instead'
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"


def pod_volume_advice(volumes: Iterable[Object], path: str) -> list[str]:
    """Return warnings about the sources of a pod's volumes."""
    found = []
    for position, volume in enumerate(volumes):
        for name, why in _IN_PODS.items():
            place = f"{path}[{position}].{_SHOWN.get(name, name)}"
            source = volume.get(name)
            if source is None:
                continue
            if why:
                found.append(f"{place}: {why}")
            else:
                template = source.get("volumeClaimTemplate") or {}
                spec = template.get("spec") or {}
                found += claim_spec_advice(spec, f"{place}.volumeClaimTemplate.spec")
    return found


def claim_spec_advice(spec: Object, path: str) -> list[str]:
    resources = spec.get("resources") or {}
    return [
        text
        for part in ("requests", "limits")
        for text in fraction_advice(resources.get(part), ("storage",), f"{path}.resources.{part}")
    ]


def claim_advice(obj: Object) -> list[str]:
    found = []
    if _STORAGE_CLASS in (obj["metadata"].get("annotations") or {}):
        found.append(f"metadata.annotations[{_STORAGE_CLASS}]: {_CLASS_IN_VOLUME}")
    return found + claim_spec_advice(obj.get("spec") or {}, "spec")


def volume_advice(obj: Object) -> list[str]:
    """Return warnings about a PersistentVolume."""
    spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
    found = []
    if _STORAGE_CLASS in annotations:
        found.append(f"metadata.annotations[{_STORAGE_CLASS}]: {_CLASS_IN_VOLUME}")
    if _MOUNT_OPTIONS in annotations:
        use = 'use "mountOptions" attribute instead'
        found.append(f"metadata.annotations[{_MOUNT_OPTIONS}]: deprecated since v1.31; {use}")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for position, term in enumerate(required.get("nodeSelectorTerms") or ()):
        place = f"spec.nodeAffinity.required.nodeSelectorTerms[{position}].matchExpressions"
        found += expression_advice(term.get("matchExpressions"), place)
    return found + [
        f"spec.{_SHOWN.get(name, name)}: {_IN_PODS[name]}"
        for name in _IN_PERSISTENT_VOLUMES
        if name in spec
    ]


def class_advice(obj: Object) -> list[str]:
    """Return warnings about a StorageClass."""
    found = []
    for position, term in enumerate(obj.get("allowedTopologies") or ()):
        for index, expression in enumerate(term.get("matchLabelExpressions") or ()):
            if why := label_advice(expression.get("key", "")):
                place = f"allowedTopologies[{position}].matchLabelExpressions[{index}].key"
                found.append(f"{place}: {why}")
    return found


def capacity_advice(obj: Object) -> list[str]:
    """Return warnings about a CSIStorageCapacity."""
    topology = obj.get("nodeTopology") or {}
    found = expression_advice(topology.get("matchExpressions"), "nodeTopology.matchExpressions")
    labels = topology.get("matchLabels")
    return found + selected_label_advice(labels, "nodeTopology.matchLabels", "{path}.{name}")


class _File(NamedTuple):
    """A file that a volume makes, and what it comes from."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{go_quote(self.path)} ({self.source})" if self.source else go_quote(self.path)


def overlap_advice(volumes: Iterable[Object]) -> list[str]:
    """Return warnings about files of one volume that hide each other."""
    found = []
    for volume in volumes:
        for member, named in (("configMap", "name"), ("secret", "secretName"), ("downwardAPI", "")):
            source = volume.get(member)
            if source is not None:
                kind = f"{member[0].upper()}{member[1:]}"
                told = f"{kind} {go_quote(source.get(named, ''))}" if named else kind
                files = [_File(item.get("path", "")) for item in source.get("items") or ()]
                found += _overlaps(volume, told, files)
        projected = volume.get("projected")
        if projected is not None:
            sources = projected.get("sources") or ()
            files = [file for source in sources for file in _projected_files(source)]
            found += _overlaps(volume, "Projected", files)
            name = go_quote(volume.get("name", ""))
            found += [
                f"volume {name} (Projected) has no sources provided" for each in sources if not each
            ]
    return found


def _projected_files(source: Object) -> list[_File]:
    for member in ("configMap", "secret", "downwardAPI"):
        items = (source.get(member) or {}).get("items")
        if items:
            kind = f"{member[0].upper()}{member[1:]}"
            name = go_quote(source[member].get("name", ""))
            told = kind if member == "downwardAPI" else f"{kind} {name}"
            return [_File(item.get("path", ""), told) for item in items]
    if (token := source.get("serviceAccountToken")) is not None:
        return [_File(token.get("path", ""), "ServiceAccountToken")]
    if (bundle := source.get("clusterTrustBundle")) is not None:
        name = bundle.get("name", bundle.get("signerName", ""))
        return [_File(bundle.get("path", ""), f"ClusterTrustBundle {go_quote(name)}")]
    certificate = source.get("podCertificate") or {}
    parts = {
        "certificateChainPath": "PodCertificate chain",
        "keyPath": "PodCertificate key",
        "credentialBundlePath": "PodCertificate credential bundle",
    }
    return [_File(certificate[name], what) for name, what in parts.items() if certificate.get(name)]


def _overlaps(volume: Object, source: str, files: Iterable[_File]) -> list[str]:
    head = f"volume {go_quote(volume.get('name', ''))} ({source}): overlapping paths:"
    found, seen = [], list[_File]()
    for given in files:
        file = given._replace(path=given.path.rstrip("/"))
        found += [f"{head} {file} with {other}" for other in seen if _overlap(file, other)]
        seen.append(file)
    return found


def _overlap(one: _File, other: _File) -> bool:
    if not one.path or not other.path:
        return False
    first, second = f"{one.path}/", f"{other.path}/"
    return first.startswith(second) or second.startswith(first)
