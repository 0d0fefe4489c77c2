"""Small kinds that describe a cluster: classes, budgets, priorities, nodes, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing


class PriorityClassStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return False


class NodeStrategy(BuiltinStrategy):
    keeps_new_status = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec, status = obj.setdefault("spec", {}), obj.setdefault("status", {})
        if spec.get("podCIDR") and not spec.get("podCIDRs"):
            spec["podCIDRs"] = [spec["podCIDR"]]
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])


class ApiServiceStrategy(BuiltinStrategy):
    scheme = "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:33"
    unconditional_update = False

    def default(self, obj: Object, version: VersionServing) -> None:
        service = obj["spec"].get("service")
        if service is not None:
            service.setdefault("port", 443)


class FlowSchemaStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        obj["spec"]["matchingPrecedence"] = obj["spec"].get("matchingPrecedence") or 1000


class PriorityLevelStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        if spec.get("type") == "Exempt":
            exempt = spec.setdefault("exempt", {})
            exempt.setdefault("nominalConcurrencyShares", 0)
            exempt.setdefault("lendablePercent", 0)
        limited = spec.get("limited")
        if limited is None:
            return
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        limited.setdefault("lendablePercent", 0)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or value


class ResourceClaimStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        default_claim(obj["spec"])


class ResourceClaimTemplateStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        default_claim(obj["spec"].setdefault("spec", {}))


def default_claim(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for wish in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if wish is None:
                continue
            wish.setdefault("allocationMode", "ExactCount")
            if wish["allocationMode"] == "ExactCount":
                wish.setdefault("count", 1)


class ResourceSliceStrategy(BuiltinStrategy):
    counts_generation = True

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        now = obj["metadata"].get("creationTimestamp")
        for device in obj["spec"].get("devices") or ():
            for taint in device.get("taints") or ():
                taint.setdefault("timeAdded", now)


class DeviceClassStrategy(BuiltinStrategy):
    counts_generation = True


class LimitRangeStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        for item in obj["spec"].get("limits") or ():
            if item.get("type") != "Container":
                continue
            limit = {**(item.get("max") or {}), **(item.get("default") or {})}
            request = {**(item.get("min") or {}), **limit, **(item.get("defaultRequest") or {})}
            for name, value in (("default", limit), ("defaultRequest", request)):
                if value:
                    item[name] = value
