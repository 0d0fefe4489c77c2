"""Ingresses, their classes, network policies, endpoints and slices of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy
from instar.schema.pipeline import Warn

if TYPE_CHECKING:
    from instar.fields import FieldError
    from instar.registry.resources.serving import VersionServing

_ENDPOINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


class IngressStrategy(BuiltinStrategy):
    counts_generation = True


class IngressClassStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None and not parameters.get("scope"):
            parameters["scope"] = "Cluster"


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


class EndpointsStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def check_create(self, obj: Object, version: VersionServing, warn: Warn) -> list[FieldError]:
        warn(_ENDPOINTS)
        return super().check_create(obj, version, warn)

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        warn(_ENDPOINTS)
        return super().check_update(new, old, version, subresource, warn)


class EndpointSliceStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        obj["endpoints"] = obj.get("endpoints") or None
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def is_new_generation(self, new: Object, old: Object) -> bool:
        def counted(obj: Object) -> object:
            members = {k: v for k, v in obj.items() if k not in ("metadata", "kind", "apiVersion")}
            return members, obj["metadata"].get("labels")

        return counted(new) != counted(old)
