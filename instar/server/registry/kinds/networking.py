"""Strategies of Ingress, IngressClass, NetworkPolicy, Endpoints and EndpointSlice.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.basics import immutable_errors
from instar.kube.builtin_rules.networking import (
    endpoints_errors,
    ingress_class_errors,
    ingress_errors,
    network_policy_errors,
    slice_errors,
)
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class IngressStrategy(BuiltinStrategy):
    counts_generation = True

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return ingress_errors(obj)


class IngressClassStrategy(BuiltinStrategy):
    counts_generation = True
    judges_change_first = True

    def default(self, obj: Object, version: VersionServing) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None and not parameters.get("scope"):
            parameters["scope"] = "Cluster"

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return ingress_class_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        after, before = new["spec"].get("controller"), old["spec"].get("controller")
        return immutable_errors(after, before, "spec.controller", after or "")


class NetworkPolicyStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return network_policy_errors(obj)


class EndpointsStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return endpoints_errors(obj)


class EndpointSliceStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        obj["endpoints"] = obj.get("endpoints") or None
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return slice_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return immutable_errors(new.get("addressType"), old.get("addressType"), "addressType")

    def is_new_generation(self, new: Object, old: Object) -> bool:
        def counted(obj: Object) -> object:
            members = {k: v for k, v in obj.items() if k not in ("metadata", "kind", "apiVersion")}
            return members, obj["metadata"].get("labels")

        return counted(new) != counted(old)
