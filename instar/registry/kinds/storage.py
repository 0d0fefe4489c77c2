"""Volumes, claims, and the classes and drivers behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy
from instar.registry.kinds.workloads.podspec_defaults import default_volume_source

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing

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


def _mirror_sources(spec: Object) -> None:
    """Two spellings of one wish, unless the newer one names a namespace."""
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

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        super().prepare_update(new, old, version)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        elif "generation" in old["metadata"]:
            new["metadata"]["generation"] = old["metadata"]["generation"]


class CsiNodeStrategy(BuiltinStrategy):
    unconditional_update = False

    def default(self, obj: Object, version: VersionServing) -> None:
        obj["spec"]["drivers"] = obj["spec"].get("drivers") or None


class GuardedStrategy(BuiltinStrategy):
    """Kinds that want to be told which revision an update is based on, and nothing else."""

    unconditional_update = False
