"""Deployments, StatefulSets, DaemonSets, ReplicaSets, ReplicationControllers, PodTemplates: pod
templates and how many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy
from instar.registry.kinds.workloads.podspec_defaults import default_pod_spec

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing


class TemplateStrategy(BuiltinStrategy):
    """Whatever has a pod template in its spec."""

    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        template = spec.get("template")
        if template is not None:
            default_pod_spec(template.setdefault("spec", {}))
        self.default_spec(obj, spec)

    def default_spec(self, obj: Object, spec: Object) -> None:
        """The kind's own part."""


class DeploymentStrategy(TemplateStrategy):
    def default_spec(self, obj: Object, spec: Object) -> None:
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def is_new_generation(self, new: Object, old: Object) -> bool:
        annotations = [obj["metadata"].get("annotations") for obj in (new, old)]
        return super().is_new_generation(new, old) or annotations[0] != annotations[1]


class StatefulSetStrategy(TemplateStrategy):
    def default_spec(self, obj: Object, spec: Object) -> None:
        spec.setdefault("podManagementPolicy", "OrderedReady")
        update = spec.setdefault("updateStrategy", {})
        if not update.get("type"):
            update["type"] = "RollingUpdate"
            update.setdefault("rollingUpdate", {}).setdefault("partition", 0)
        elif "rollingUpdate" in update:
            update["rollingUpdate"].setdefault("partition", 0)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        policy.setdefault("whenDeleted", "Retain")
        policy.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("kind", "PersistentVolumeClaim")
            claim.setdefault("apiVersion", "v1")
            claim["spec"].setdefault("volumeMode", "Filesystem")
            claim.setdefault("status", {})["phase"] = "Pending"


class DaemonSetStrategy(TemplateStrategy):
    def default_spec(self, obj: Object, spec: Object) -> None:
        update = spec.setdefault("updateStrategy", {})
        update.setdefault("type", "RollingUpdate")
        if update["type"] == "RollingUpdate":
            rolling = update.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)


class ReplicaSetStrategy(TemplateStrategy):
    def default_spec(self, obj: Object, spec: Object) -> None:
        spec.setdefault("replicas", 1)


class ReplicationControllerStrategy(TemplateStrategy):
    def default_spec(self, obj: Object, spec: Object) -> None:
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        if labels:
            spec.setdefault("selector", dict(labels))
            obj["metadata"].setdefault("labels", dict(labels))
        spec.setdefault("replicas", 1)


class PodTemplateStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        default_pod_spec(obj.setdefault("template", {}).setdefault("spec", {}))

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return bool(new.get("template") != old.get("template"))
