"""Strategies of dynamic resource allocation: ResourceClaim, ResourceClaimTemplate, ResourceSlice,
DeviceClass, DeviceTaintRule and ResourcePoolStatusRequest.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.basics import immutable_errors
from instar.kube.builtin_rules.devices import (
    claim_errors,
    class_errors,
    frozen_spec_errors,
    frozen_template_errors,
    pool_request_errors,
    slice_change_errors,
    slice_errors,
    taint_rule_errors,
)
from instar.server.registry.kinds.builtin import BuiltinStrategy
from instar.server.registry.kinds.device_versions import NEW, converted

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class ResourceClaimStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        default_claim(obj["spec"])

    def check_new(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return claim_errors(converted(obj, NEW)["spec"], "spec")

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return frozen_spec_errors(new, old, "ResourceClaimSpec")


class ResourceClaimTemplateStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        default_claim(obj["spec"].setdefault("spec", {}))

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return claim_errors(converted(obj, NEW)["spec"].get("spec") or {}, "spec.spec")

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return frozen_template_errors(new, old)


def default_claim(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        old_form = request if request.get("deviceClassName") else None
        for wish in (old_form, request.get("exactly"), *(request.get("firstAvailable") or ())):
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
            for taint in (device.get("basic") or device).get("taints") or ():
                taint.setdefault("timeAdded", now)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return slice_errors(converted(obj, NEW)["spec"])

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return slice_change_errors(converted(new, NEW)["spec"], converted(old, NEW)["spec"])


class DeviceClassStrategy(BuiltinStrategy):
    counts_generation = True

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return class_errors(obj["spec"])


class DeviceTaintRuleStrategy(BuiltinStrategy):
    counts_generation = True

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        taint = obj["spec"].get("taint")
        if taint is not None:
            taint.setdefault("timeAdded", obj["metadata"].get("creationTimestamp"))

    def check_new(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return taint_rule_errors(obj["spec"])

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return taint_rule_errors(new["spec"], old["spec"])


class ResourcePoolStatusRequestStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        obj["spec"].setdefault("limit", 100)

    def check_new(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return pool_request_errors(obj["spec"])

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return immutable_errors(new["spec"], old["spec"], "spec")
