"""Strategies of Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, PodTemplate
and ControllerRevision.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.field_errors import FieldError, forbidden
from instar.base.json_values import Object
from instar.kube.builtin_rules import controllers as checks
from instar.kube.builtin_rules.basics import count_errors, immutable_errors
from instar.kube.builtin_rules.pods.pod_spec import template_errors
from instar.kube.builtin_rules.selectors import in_go_order
from instar.server.registry.kinds.builtin import BuiltinStrategy
from instar.server.registry.kinds.workloads.podspec_defaults import default_pod_spec

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_COUNTS = (
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "updatedReplicas",
    "unavailableReplicas", "currentReplicas", "terminatingReplicas", "observedGeneration",
    "collisionCount", "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
    "numberReady", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
)  # fmt: skip


class TemplateStrategy(BuiltinStrategy):
    """Base of kinds with a pod template in the spec."""

    counts_generation = True
    ready_counts: tuple[str, ...] = ()
    """Counts of the status that may not be greater than ``replicas``."""

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        template = spec.get("template")
        if template is not None:
            default_pod_spec(template.setdefault("spec", {}))
        self.default_spec(obj, spec)

    def default_spec(self, obj: Object, spec: Object) -> None:
        """Apply the kind's own defaults."""

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        status = new.get("status") or {}
        found = count_errors(status, "status", *_COUNTS)
        return found + checks.ready_errors(status, self.ready_counts)


class SelectedStrategy(TemplateStrategy):
    """Kinds with an immutable selector."""

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        selector, former = new["spec"].get("selector"), old["spec"].get("selector")
        return immutable_errors(selector, former, "spec.selector", in_go_order(selector))


class DeploymentStrategy(SelectedStrategy):
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

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.deployment_errors(obj["spec"])

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return checks.deployment_status_errors(new.get("status") or {})


class StatefulSetStrategy(TemplateStrategy):
    ready_counts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    name_rule = staticmethod(checks.statefulset_name)

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

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.statefulset_errors(obj["spec"], created=False)

    def check_new(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.statefulset_errors(obj["spec"], created=True)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        fixed = [
            {name: value for name, value in obj["spec"].items() if name not in checks.STS_MUTABLE}
            for obj in (new, old)
        ]
        return [] if fixed[0] == fixed[1] else [forbidden("spec", checks.STS_IMMUTABLE)]


class DaemonSetStrategy(SelectedStrategy):
    judges_change_first = True

    def default_spec(self, obj: Object, spec: Object) -> None:
        update = spec.setdefault("updateStrategy", {})
        update.setdefault("type", "RollingUpdate")
        if update["type"] == "RollingUpdate":
            rolling = update.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        """Maintain the deprecated template generation annotation, which clients still read."""
        count = 1
        if old is not None:
            annotations = old["metadata"].get("annotations") or {}
            given = annotations.get(_TEMPLATE_GENERATION, "0")
            count = int(given) if given.isascii() and given.isdigit() else 0
            count += obj["spec"].get("template") != old["spec"].get("template")
        obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(count)

    def prepare_status(self, new: Object, old: Object, version: VersionServing) -> None:
        super().prepare_status(new, old, version)
        count = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0")
        new["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = count

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.daemonset_errors(obj["spec"])


class ReplicaSetStrategy(SelectedStrategy):
    ready_counts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

    def default_spec(self, obj: Object, spec: Object) -> None:
        spec.setdefault("replicas", 1)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.replicaset_errors(obj["spec"])


class ReplicationControllerStrategy(TemplateStrategy):
    ready_counts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

    def default_spec(self, obj: Object, spec: Object) -> None:
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        if labels:
            spec.setdefault("selector", dict(labels))
            obj["metadata"].setdefault("labels", dict(labels))
        spec.setdefault("replicas", 1)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.replication_controller_errors(obj["spec"])


class PodTemplateStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        default_pod_spec(obj.setdefault("template", {}).setdefault("spec", {}))

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return bool(new.get("template") != old.get("template"))

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return template_errors(obj.get("template") or {}, "template")


class ControllerRevisionStrategy(BuiltinStrategy):
    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return count_errors(obj, "", "revision")

    def check_new(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return checks.revision_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return immutable_errors(new.get("data"), old.get("data"), "data")
