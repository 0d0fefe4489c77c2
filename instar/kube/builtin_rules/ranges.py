"""Validates IPAddresses and ServiceCIDRs.

Called by ``server/registry/kinds/ranges.py``.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from instar.base.field_errors import FieldError, index, invalid, required
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_subdomain, path_segment_name
from instar.kube.builtin_rules.addresses import NOT_AN_ADDRESS, canonical_network_errors
from instar.kube.builtin_rules.basics import IMMUTABLE, texts_at

_MOST_RANGES = 2
_ONE_OF_EACH = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
)


def address_name(name: str, prefix: bool) -> list[str]:
    """Check the name of an IPAddress, which is the address in canonical form."""
    try:
        address = ip_address(name)
    except ValueError:
        return [NOT_AN_ADDRESS]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if str(address) == name else [f'must be in canonical form ("{address}")']


def ip_address_errors(obj: Object) -> list[FieldError]:
    parent = (obj.get("spec") or {}).get("parentRef")
    where = "spec.parentRef"
    if parent is None:
        return [required(where)]
    found: list[FieldError] = []
    if parent.get("group"):
        found += texts_at(f"{where}.group", parent["group"], dns1123_subdomain(parent["group"]))
    for name in ("resource", "name", "namespace"):
        value = parent.get(name) or ""
        if value:
            found += texts_at(f"{where}.{name}", value, path_segment_name(value))
        elif name != "namespace":
            found.append(required(f"{where}.{name}"))
    return found


def ip_address_change_errors(new: Object, old: Object) -> list[FieldError]:
    after, before = ((obj.get("spec") or {}).get("parentRef") for obj in (new, old))
    return [] if after == before else [invalid("spec.parentRef", after, IMMUTABLE)]


def service_cidr_errors(obj: Object) -> list[FieldError]:
    ranges = (obj.get("spec") or {}).get("cidrs") or []
    where = "spec.cidrs"
    if not ranges:
        return [required(where, "at least one CIDR required")]
    if len(ranges) > _MOST_RANGES:
        return [invalid(where, {"CIDRs": ranges}, "may only hold up to 2 values")]
    if len(ranges) == _MOST_RANGES and (":" in ranges[0]) == (":" in ranges[1]):
        return [invalid(where, {"CIDRs": ranges}, _ONE_OF_EACH)]
    return [
        error
        for position, text in enumerate(ranges)
        for error in canonical_network_errors(text, index(where, position))
    ]


def service_cidr_change_errors(new: Object, old: Object) -> list[FieldError]:
    """Check an update: only a range of the other IP family may be added."""
    after, before = ((obj.get("spec") or {}).get("cidrs") or [] for obj in (new, old))
    if after == before or (len(before) == 1 and len(after) == 2 and after[:1] == before):
        return []
    return [invalid("spec.cidrs", after, IMMUTABLE)]
