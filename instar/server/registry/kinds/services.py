"""Strategy of Service: defaults, ports and address fields.

The verbs find it through ``strategy_table.py``; ``admission/plugins/service_addresses.py``
allocates cluster IPs and node ports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.field_errors import FieldError, forbidden
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label
from instar.kube.builtin_rules.services import (
    change_errors,
    class_change_errors,
    gets_node_ports,
    has_cluster_ip,
    has_health_port,
    is_external,
    may_have_node_ports,
    spec_errors,
)
from instar.kube.schema.metadata.object_meta import NameRule
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing

_AFFINITY_SECONDS = 10800


class ServiceStrategy(BuiltinStrategy):
    name_rule: NameRule = staticmethod(lambda name, prefix: dns1123_label(name.rstrip("-")))

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        _default_affinity(spec)
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
        if has_cluster_ip(spec):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if is_external(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        spec = obj["spec"]
        if spec.get("type") == "ExternalName":  # accepted, because old servers defaulted it
            spec.pop("internalTrafficPolicy", None)
        if old is not None:
            _keep_allocated(spec, old["spec"])
            _follow_address(spec, old["spec"])
            _drop_unused(spec, old["spec"])
        elif spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return spec_errors(obj["spec"])

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        balancer = (new.get("status") or {}).get("loadBalancer") or {}
        if balancer.get("ingress") and new["spec"].get("type") != "LoadBalancer":
            text = "may only be used when `spec.type` is 'LoadBalancer'"
            return [forbidden("status.loadBalancer.ingress", text)]
        return []

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        found = change_errors(new["spec"], old["spec"])
        return found + class_change_errors(new["spec"], old["spec"])


def _default_affinity(spec: Object) -> None:
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        client.setdefault("timeoutSeconds", _AFFINITY_SECONDS)


def _keep_allocated(spec: Object, old: Object) -> None:
    """Keep allocated values that an update leaves out."""
    if has_cluster_ip(spec) and has_cluster_ip(old) and old.get("clusterIP"):
        if not spec.get("clusterIP"):
            spec["clusterIP"] = old["clusterIP"]
        if not spec.get("clusterIPs") and spec["clusterIP"] == old["clusterIP"]:
            spec["clusterIPs"] = list(old.get("clusterIPs") or ())
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if name not in spec and name in old:
                spec[name] = old[name]
    if gets_node_ports(spec) and gets_node_ports(old):
        _keep_node_ports(spec.get("ports") or [], old.get("ports") or [])
    if has_health_port(spec) and has_health_port(old) and old.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or old["healthCheckNodePort"]


def _keep_node_ports(ports: list[Object], old: list[Object]) -> None:
    """Give ports without a node port the one that the port of their name had, if it is free."""
    before = {port.get("name", ""): port["nodePort"] for port in old if port.get("nodePort")}
    taken = {port["nodePort"] for port in ports if port.get("nodePort")}
    for port in ports:
        known = before.get(port.get("name", ""))
        if not port.get("nodePort") and known is not None and known not in taken:
            port["nodePort"] = known


def _follow_address(spec: Object, old: Object) -> None:
    """Copy ``clusterIP`` to ``clusterIPs`` for older clients that write only the former."""
    address, before = spec.get("clusterIP"), old.get("clusterIP")
    if address and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [address]
    elif address != before and spec.get("clusterIPs") == old.get("clusterIPs"):
        if address:
            spec["clusterIPs"] = [address, *(spec.get("clusterIPs") or ())[1:]]
        else:
            spec.pop("clusterIPs", None)


def _drop_unused(spec: Object, old: Object) -> None:
    """Drop unchanged fields that the new service type does not use."""

    def drop(*names: str) -> None:
        for name in names:
            if spec.get(name) == old.get(name):
                spec.pop(name, None)

    if has_cluster_ip(old) and not has_cluster_ip(spec):
        drop("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if "clusterIPs" not in spec:
            spec.pop("clusterIP", None)
        drop("internalTrafficPolicy")
    if may_have_node_ports(old) and not may_have_node_ports(spec):
        _drop_node_ports(spec.get("ports") or [], old.get("ports") or [])
    if has_health_port(old) and not has_health_port(spec):
        drop("healthCheckNodePort")
    if old.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_external(old) and not is_external(spec):
        drop("externalTrafficPolicy")


def _drop_node_ports(ports: list[Object], old: list[Object]) -> None:
    before = {port["nodePort"] for port in old if port.get("nodePort")}
    if all(port.get("nodePort", 0) in before for port in ports if port.get("nodePort")):
        for port in ports:
            port.pop("nodePort", None)
