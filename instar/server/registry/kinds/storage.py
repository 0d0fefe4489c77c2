"""Strategies of PersistentVolume, PersistentVolumeClaim, StorageClass and the CSI kinds.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object, same_json
from instar.kube.builtin_rules.claims import claim_change_errors, claim_errors
from instar.kube.builtin_rules.storage import (
    attachment_change_errors,
    attachment_errors,
    attachment_status_errors,
    csi_node_change_errors,
    csi_node_errors,
    driver_change_errors,
    driver_errors,
    storage_class_change_errors,
    storage_class_errors,
    volume_change_errors,
    volume_errors,
)
from instar.server.registry.kinds.builtin import BuiltinStrategy
from instar.server.registry.kinds.workloads.podspec_defaults import default_volume_source
from instar.server.registry.resources.context import timestamp, utc_now

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing

_CLAIMS, _SNAPSHOTS = "PersistentVolumeClaim", "VolumeSnapshot"


class PersistentVolumeStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        default_volume_source(spec)
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        if old is None:
            _protect(obj, "kubernetes.io/pv-protection")
            now = obj["metadata"].get("creationTimestamp")
            obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now}

    def prepare_status(self, new: Object, old: Object, version: VersionServing) -> None:
        """Note when the phase changes, unless the client says when it did."""
        super().prepare_status(new, old, version)
        status, former = new["status"], old.get("status") or {}
        moment, known = status.get("lastPhaseTransitionTime"), former.get("lastPhaseTransitionTime")
        if status.get("phase") == former.get("phase"):
            if moment is None and known is not None:
                status["lastPhaseTransitionTime"] = known
        elif moment in (None, known):
            status["lastPhaseTransitionTime"] = timestamp(utc_now())

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return volume_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return [*volume_errors(new), *volume_change_errors(new, old)]


class PersistentVolumeClaimStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        obj["spec"].setdefault("volumeMode", "Filesystem")
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        spec = obj["spec"]
        if old is None:
            _protect(obj, "kubernetes.io/pvc-protection")
            obj["status"] = {"phase": "Pending"}
            source = spec.get("dataSource")
            if source is not None and source.get("kind") not in (_CLAIMS, _SNAPSHOTS):
                del spec["dataSource"]
        _mirror_sources(spec)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return claim_errors(obj["spec"])

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return claim_change_errors(new, old)


def _mirror_sources(spec: Object) -> None:
    """Keep dataSource and dataSourceRef equal, unless the latter names a namespace."""
    reference = spec.get("dataSourceRef")
    if reference is None and spec.get("dataSource") is not None:
        spec["dataSourceRef"] = dict(spec["dataSource"])
    elif reference and not reference.get("namespace") and "dataSource" not in spec:
        spec["dataSource"] = {"apiGroup": None, **reference}


def _protect(obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


class StorageClassStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return storage_class_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return storage_class_change_errors(new, old)


class VolumeAttributesClassStrategy(BuiltinStrategy):
    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        if old is None:
            _protect(obj, "kubernetes.io/vac-protection")


class CsiDriverStrategy(BuiltinStrategy):
    unconditional_update = False

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        spec.setdefault("attachRequired", True)
        for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
            spec.setdefault(name, False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return driver_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return driver_change_errors(new, old)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        super().prepare_update(new, old, version)
        if not same_json(new.get("spec"), old.get("spec")):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        elif "generation" in old["metadata"]:
            new["metadata"]["generation"] = old["metadata"]["generation"]


class CsiNodeStrategy(BuiltinStrategy):
    unconditional_update = False

    def default(self, obj: Object, version: VersionServing) -> None:
        obj["spec"]["drivers"] = obj["spec"].get("drivers") or None

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return csi_node_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return csi_node_change_errors(new, old)


class VolumeAttachmentStrategy(BuiltinStrategy):
    unconditional_update = False

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return attachment_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return attachment_change_errors(new, old)

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return attachment_status_errors(new)


class GuardedStrategy(BuiltinStrategy):
    """Kinds that require a resourceVersion on update."""

    unconditional_update = False
