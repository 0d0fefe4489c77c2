"""Strategies of PriorityClass, Node, APIService, RuntimeClass, Lease, LeaseCandidate and
StorageVersion.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.basics import immutable_errors
from instar.kube.builtin_rules.cluster import (
    api_service_errors,
    lease_errors,
    node_change_errors,
    node_errors,
    node_status_errors,
    priority_class_change_errors,
    priority_class_errors,
    runtime_class_errors,
)
from instar.kube.builtin_rules.server_versions import (
    candidate_change_errors,
    candidate_errors,
    candidate_name,
    storage_version_errors,
    storage_version_name,
)
from instar.kube.schema.metadata.object_meta import NameRule, name_is_path_segment
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class PriorityClassStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return False

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return priority_class_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return priority_class_change_errors(new, old)


class NodeStrategy(BuiltinStrategy):
    keeps_new_status = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec, status = obj.setdefault("spec", {}), obj.setdefault("status", {})
        if spec.get("podCIDR") and not spec.get("podCIDRs"):
            spec["podCIDRs"] = [spec["podCIDR"]]
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        """Drop the configuration of kubelets that Kubernetes once took from here."""
        if old is None or not (old.get("spec") or {}).get("configSource"):
            obj["spec"].pop("configSource", None)
        if old is None:
            (obj.get("status") or {}).pop("config", None)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return node_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return node_change_errors(new, old)

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return node_status_errors(new)


class ApiServiceStrategy(BuiltinStrategy):
    scheme = "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:33"
    name_rule: NameRule = staticmethod(name_is_path_segment)
    unconditional_update = False

    def default(self, obj: Object, version: VersionServing) -> None:
        service = obj["spec"].get("service")
        if service is not None:
            service.setdefault("port", 443)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return api_service_errors(obj)


class RuntimeClassStrategy(BuiltinStrategy):
    unconditional_update = False

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return runtime_class_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return immutable_errors(new.get("handler"), old.get("handler"), "handler")


class LeaseCandidateStrategy(BuiltinStrategy):
    name_rule: NameRule = staticmethod(candidate_name)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return candidate_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return candidate_change_errors(new, old)


class StorageVersionStrategy(BuiltinStrategy):
    name_rule: NameRule = staticmethod(storage_version_name)

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return storage_version_errors(new)


class LeaseStrategy(BuiltinStrategy):
    unconditional_update = False

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return lease_errors(obj)
