"""Warnings about Services, Ingresses, NetworkPolicies and endpoints.

Called by ``by_kind.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.builtin_rules.advice.values import address_advice, network_advice

_HINTS = "service.kubernetes.io/topology-aware-hints"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_MANAGED = {
    "endpoints.kubernetes.io/managed-by": ("endpoint-controller",),
    "endpointslice.kubernetes.io/managed-by": (
        "endpointslice-controller.k8s.io",
        "endpointslicemirroring-controller.k8s.io",
    ),
}
"""Label → the controllers whose addresses are right already."""


def service_advice(obj: Object) -> list[str]:
    spec, found = obj["spec"], list[str]()
    if _HINTS in (obj["metadata"].get("annotations") or {}):
        use = "service.kubernetes.io/topology-mode"
        found.append(f"annotation {_HINTS} is deprecated, please use {use} instead")
    headless = spec.get("clusterIP") == "None"
    if spec.get("clusterIP") and not headless:
        found += _each(spec, "clusterIPs")
    external, by_name = spec.get("externalIPs"), spec.get("type") == "ExternalName"
    alone = headless and spec.get("type") == "ClusterIP"
    if alone:
        found += _ignored_when_headless(spec)
    found += _each(spec, "externalIPs")
    if external and not alone and not by_name:
        found.append(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        )
    found += address_advice(spec.get("loadBalancerIP") or "", "spec.loadBalancerIP")
    for position, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        found += network_advice(text.strip(), f"spec.loadBalancerSourceRanges[{position}]")
    if by_name and external:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not by_name and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _ignored_when_headless(spec: Object) -> Iterator[str]:
    for name in ("loadBalancerIP", "externalIPs"):
        if spec.get(name):
            yield f"spec.{name} is ignored for headless services"
    if spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def _each(spec: Object, name: str) -> Iterator[str]:
    for position, text in enumerate(spec.get(name) or ()):
        yield from address_advice(text, f"spec.{name}[{position}]")


def ingress_advice(obj: Object) -> list[str]:
    annotated = _INGRESS_CLASS in (obj["metadata"].get("annotations") or {})
    if not annotated or obj["spec"].get("ingressClassName") is not None:
        return []
    name = go_quote(_INGRESS_CLASS)
    return [f"annotation {name} is deprecated, please use 'spec.ingressClassName' instead"]


def policy_advice(obj: Object) -> list[str]:
    """Return the warnings about a NetworkPolicy."""
    found = []
    for member, side in (("ingress", "from"), ("egress", "to")):
        for position, rule in enumerate(obj["spec"].get(member) or ()):
            for index, peer in enumerate(rule.get(side) or ()):
                place = f"spec.{member}[{position}].{side}[{index}].ipBlock"
                block = peer.get("ipBlock") or {}
                found += network_advice(block.get("cidr", ""), f"{place}.cidr")
                for number, text in enumerate(block.get("except") or ()):
                    found += network_advice(text, f"{place}.except[{number}]")
    return found


def endpoints_advice(obj: Object) -> list[str]:
    if _is_managed(obj):
        return []
    return [
        text
        for position, subset in enumerate(obj.get("subsets") or ())
        for member in ("addresses", "notReadyAddresses")
        for index, address in enumerate(subset.get(member) or ())
        for text in address_advice(
            address.get("ip", ""), f"subsets[{position}].{member}[{index}].ip"
        )
    ]


def slice_advice(obj: Object, *, created: bool) -> list[str]:
    """Return the warnings about an EndpointSlice."""
    found = []
    if created and obj.get("addressType") == "FQDN":
        found.append("spec.addressType: FQDN endpoints are deprecated")
    if _is_managed(obj):
        return found
    return found + [
        text
        for position, endpoint in enumerate(obj.get("endpoints") or ())
        for index, address in enumerate(endpoint.get("addresses") or ())
        for text in address_advice(address, f"endpoints[{position}].addresses[{index}]")
    ]


def _is_managed(obj: Object) -> bool:
    labels = obj["metadata"].get("labels") or {}
    return any(labels.get(name) in controllers for name, controllers in _MANAGED.items())
