"""Table cells of Ingress, IngressClass, NetworkPolicy, IPAddress, ServiceCIDR, Endpoints and
EndpointSlice.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import (
    NONE,
    UNSET,
    age_of,
    balancer_addresses,
    first_few,
    name_of,
    part,
    selector_cell,
)

_FEW_HOSTS = 3


def _ingress(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("ingressClassName") or NONE,
        _hosts(spec.get("rules") or []),
        balancer_addresses(obj),
        "80, 443" if spec.get("tls") else "80",
        age_of(obj, now),
    ]


def _hosts(rules: list[Object]) -> str:
    """Format hosts; as upstream, the remainder counts rules, not hosts."""
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    shown = ",".join(hosts[:_FEW_HOSTS]) or "*"
    if len(hosts) > _FEW_HOSTS:
        return f"{shown} + {len(rules) - _FEW_HOSTS} more..."
    return shown


def _ingress_class(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    parameters = spec.get("parameters")
    shown = NONE
    if parameters is not None:
        group = parameters.get("apiGroup")
        kind = parameters.get("kind", "")
        shown = f"{kind}.{group}" if group else kind
        shown = f"{shown}/{parameters.get('name', '')}"
    return [name_of(obj), spec.get("controller", ""), shown, age_of(obj, now)]


def _network_policy(obj: Object, now: datetime) -> list[Any]:
    selector = part(obj, "spec").get("podSelector")
    return [name_of(obj), selector_cell(selector), age_of(obj, now)]


def _ip_address(obj: Object, now: datetime) -> list[Any]:
    """Three cells for two columns, as upstream has it."""
    parent = part(obj, "spec", "parentRef")
    resource = ".".join(filter(None, (parent.get("resource"), parent.get("group"))))
    shown = "/".join(filter(None, (resource, parent.get("namespace"), parent.get("name"))))
    return [name_of(obj), shown, age_of(obj, now)]


def _service_cidr(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), ",".join(part(obj, "spec").get("cidrs") or ()), age_of(obj, now)]


def endpoints(obj: Object, now: datetime) -> list[Any]:
    """Return the cells of an Endpoints object's row in a Table."""
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [one.get("ip", "") for one in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [_at(address, one.get("port", 0)) for one in ports for address in addresses]
        if not ports:
            found += addresses
    return [name_of(obj), first_few(found, NONE), age_of(obj, now)]


def _at(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _endpoint_slice(obj: Object, now: datetime) -> list[Any]:
    ports = ["*" if one.get("port") is None else str(one["port"]) for one in obj.get("ports") or ()]
    addresses = [
        address for one in obj.get("endpoints") or () for address in one.get("addresses") or ()
    ]
    return [
        name_of(obj),
        obj.get("addressType", ""),
        first_few(ports, UNSET),
        first_few(addresses, UNSET),
        age_of(obj, now),
    ]


CELLS: Mapping[str, Cells] = {
    "endpointslices": _endpoint_slice,
    "ingresses": _ingress,
    "ingressclasses": _ingress_class,
    "ipaddresses": _ip_address,
    "networkpolicies": _network_policy,
    "servicecidrs": _service_cidr,
}
