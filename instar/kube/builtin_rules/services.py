"""Validates Services; allocation of addresses and ports is done by the registry.

Called by ``server/registry/kinds/services.py`` and the address admission plugin.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label, dns1123_subdomain, qualified_name
from instar.kube.builtin_rules.addresses import (
    address_errors,
    family_of,
    network_errors,
    special_errors,
)
from instar.kube.builtin_rules.basics import (
    choice_errors,
    label_map_errors,
    port_errors,
    port_or_name_errors,
    texts_at,
)

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_LONGEST_AFFINITY = 86400
_ONLY_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL = "may not be set for ExternalName services"
_KUBELET = 10250


def may_have_node_ports(spec: Object) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def gets_node_ports(spec: Object) -> bool:
    """Return whether ports without a node port get one; those that have one keep it."""
    allocates = spec.get("allocateLoadBalancerNodePorts") is not False
    return may_have_node_ports(spec) and (spec["type"] == "NodePort" or allocates)


def has_cluster_ip(spec: Object) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def has_health_port(spec: Object) -> bool:
    local = spec.get("externalTrafficPolicy") == "Local"
    return spec.get("type") == "LoadBalancer" and local


def is_headless(spec: Object) -> bool:
    first: object = (spec.get("clusterIPs") or [spec.get("clusterIP")])[0]
    return first == "None"


def is_external(spec: Object) -> bool:
    """Return whether the service may be reached from outside of the cluster."""
    outside = spec.get("type") in ("LoadBalancer", "NodePort")
    return outside or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def spec_errors(spec: Object) -> list[FieldError]:
    ports = spec.get("ports") or []
    found: list[FieldError] = []
    if not ports and not is_headless(spec) and spec.get("type") != "ExternalName":
        found.append(required("spec.ports"))
    found += _type_errors(spec)
    names: set[str] = set()
    for position, port in enumerate(ports):
        where = index("spec.ports", position)
        found += _port_errors(port, where, names, needs_name=len(ports) > 1)
    found += label_map_errors(spec.get("selector") or {}, "spec.selector")
    found += _affinity_errors(spec)
    found += _cluster_ip_errors(spec)
    for position, address in enumerate(spec.get("externalIPs") or ()):
        where = index("spec.externalIPs", position)
        found += address_errors(address, where) or special_errors(address, where)
    if spec.get("type") not in TYPES:
        found.append(not_supported("spec.type", spec.get("type"), TYPES))
    found += _node_port_errors(spec)
    found += _repeated_ports(ports)
    found += _balancer_errors(spec)
    return found + _policy_errors(spec)


def _type_errors(spec: Object) -> list[FieldError]:
    type = spec.get("type")
    found: list[FieldError] = []
    if type == "LoadBalancer":
        for position, port in enumerate(spec.get("ports") or ()):
            if port.get("port") == _KUBELET:
                text = f"may not expose port {_KUBELET} externally since it is used by kubelet"
                found.append(invalid(f"spec.ports[{position}].port", _KUBELET, text))
    if type in ("LoadBalancer", "NodePort") and is_headless(spec):
        text = f"may not be set to 'None' for {type} services"
        found.append(invalid("spec.clusterIPs[0]", "None", text))
    if type == "ExternalName":
        if spec.get("clusterIPs"):
            found.append(forbidden("spec.clusterIPs", _NOT_EXTERNAL))
        name = spec.get("externalName", "")
        if name:
            texts = dns1123_subdomain(name.removesuffix("."))
            found += texts_at("spec.externalName", name, texts)
        else:
            found.append(required("spec.externalName"))
    return found


def _port_errors(port: Object, path: str, names: set[str], *, needs_name: bool) -> list[FieldError]:
    found: list[FieldError] = []
    name, protocol = port.get("name", ""), port.get("protocol", "")
    if needs_name and not name:
        found.append(required(child(path, "name")))
    elif name:
        found += texts_at(child(path, "name"), name, dns1123_label(name))
        if name in names:
            found.append(duplicate(child(path, "name"), name))
        names.add(name)
    found += port_errors(port.get("port", 0), child(path, "port"))
    if not protocol:
        found.append(required(child(path, "protocol")))
    else:
        found += choice_errors(protocol, child(path, "protocol"), _PROTOCOLS)
    found += port_or_name_errors(port.get("targetPort", 0), child(path, "targetPort"))
    application = port.get("appProtocol")
    if application is not None:
        where = child(path, "appProtocol")
        found += texts_at(where, application, qualified_name(application))
    return found


def _affinity_errors(spec: Object) -> list[FieldError]:
    affinity, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    if not affinity:
        return [required("spec.sessionAffinity")]
    if affinity == "None" and config is not None:
        text = 'must not be set when session affinity is "None"'
        return [forbidden("spec.sessionAffinityConfig", text)]
    if affinity == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        if seconds is None:
            return [required(where, f"valid range is between 0 and {_LONGEST_AFFINITY}")]
        if not 0 < seconds <= _LONGEST_AFFINITY:
            text = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            return [invalid(where, seconds, text)]
        return []
    return choice_errors(affinity, "spec.sessionAffinity", ("ClientIP", "None"))


def _cluster_ip_errors(spec: Object) -> list[FieldError]:
    where, addresses = "spec.clusterIPs", spec.get("clusterIPs") or []
    families = spec.get("ipFamilies") or []
    if spec.get("type") == "ExternalName":
        return [
            forbidden(f"spec.{name}", _NOT_EXTERNAL)
            for name in ("ipFamilyPolicy", "ipFamilies")
            if spec.get(name)
        ]
    found: list[FieldError] = []
    if not addresses and spec.get("clusterIP"):
        found.append(required(where))
    if addresses and spec.get("clusterIP") != addresses[0]:
        found.append(invalid(where, addresses, "first value must match `clusterIP`"))
    for position, address in enumerate(addresses):
        if address == "None":
            if len(addresses) > 1:
                found.append(
                    invalid(index(where, position), address, "must be empty when it is 'None'")
                )
            continue
        found += address_errors(address, index(where, position))
    for position, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if address != "None" and family_of(address) not in ("", family):
            text = f"expected an {family} value as indicated by `ipFamilies[{position}]`"
            found.append(invalid(index(where, position), address, text))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None:
        choices = ("SingleStack", "PreferDualStack", "RequireDualStack")
        found += choice_errors(policy, "spec.ipFamilyPolicy", sorted(choices))
    for position, family in enumerate(families):
        found += choice_errors(family, index("spec.ipFamilies", position), ("IPv4", "IPv6"))
    return found


def _node_port_errors(spec: Object) -> list[FieldError]:
    type = spec.get("type")
    if type not in ("ClusterIP", "ExternalName"):
        return []
    text = f"may not be used when `type` is '{type}'"
    return [
        forbidden(f"spec.ports[{position}].nodePort", text)
        for position, port in enumerate(spec.get("ports") or ())
        if port.get("nodePort")
    ]


def _repeated_ports(ports: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, int]] = set()
    seen_nodes: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        protocol, node = port.get("protocol", ""), port.get("nodePort")
        if (protocol, port.get("port", 0)) in seen:
            found.append(duplicate(index("spec.ports", position), _port_in_go(port)))
        seen.add((protocol, port.get("port", 0)))
        if node and (protocol, node) in seen_nodes:
            found.append(duplicate(f"spec.ports[{position}].nodePort", node))
        seen_nodes.add((protocol, node or 0))
    return found


def _port_in_go(port: Object) -> Object:
    """Return the duplicate port key as Go prints it."""
    return {
        "Name": "",
        "Protocol": port.get("protocol", ""),
        "AppProtocol": None,
        "Port": port.get("port", 0),
        "TargetPort": 0,
        "NodePort": 0,
    }


def _balancer_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    balances = spec.get("type") == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges") or []
    if ranges:
        if not balances:
            found.append(forbidden("spec.LoadBalancerSourceRanges", _ONLY_BALANCER))
        for position, text in enumerate(ranges):
            found += network_errors(text.strip(), index("spec.LoadBalancerSourceRanges", position))
    if balances and spec.get("allocateLoadBalancerNodePorts") is None:
        found.append(required("spec.allocateLoadBalancerNodePorts"))
    if not balances and spec.get("allocateLoadBalancerNodePorts") is not None:
        found.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCER))
    return found + class_errors(spec)


def class_errors(spec: Object) -> list[FieldError]:
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    if spec.get("type") != "LoadBalancer":
        return [forbidden("spec.loadBalancerClass", _ONLY_BALANCER)]
    return texts_at("spec.loadBalancerClass", name, qualified_name(name))


def _policy_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    external, choices = spec.get("externalTrafficPolicy", ""), ("Cluster", "Local")
    if external and not is_external(spec):
        text = "may only be set for externally-accessible services"
        found.append(invalid("spec.externalTrafficPolicy", external, text))
    elif external:
        found += choice_errors(external, "spec.externalTrafficPolicy", choices)
    if spec.get("healthCheckNodePort", 0) and not has_health_port(spec):
        text = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        found.append(invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], text))
    internal = spec.get("internalTrafficPolicy")
    if internal is not None:
        found += choice_errors(internal, "spec.internalTrafficPolicy", choices)
    elif has_cluster_ip(spec):
        found.append(required("spec.internalTrafficPolicy"))
    return found


def change_errors(new: Object, old: Object) -> list[FieldError]:
    """Check an update: the first address is immutable while both specs have one."""
    found: list[FieldError] = []
    if has_cluster_ip(new) and has_cluster_ip(old):
        before, after = old.get("clusterIPs") or [], new.get("clusterIPs") or []
        if before and before[:1] != after[:1]:
            found.append(invalid("spec.clusterIPs[0]", after or None, "may not change once set"))
    return found


def class_change_errors(new: Object, old: Object) -> list[FieldError]:
    """Check an update: the class is immutable while the type is LoadBalancer."""
    name, before = new.get("loadBalancerClass"), old.get("loadBalancerClass")
    if old.get("type") == "LoadBalancer" == new.get("type"):
        if name == before:
            return []
        return [invalid("spec.loadBalancerClass", name, "may not change once set")]
    return class_errors(new)
