"""Whether a ServiceCIDR may go: no address in it would be left without a range. Pure.

The controller of ranges (``server/registry/controllers/service_ranges.py``) calls it.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network


def networks_of(cidrs: Iterable[str]) -> list[Network]:
    return [ip_network(text) for text in cidrs]


def would_orphan(
    leaving: Iterable[Network], staying: Iterable[Network], addresses: Iterable[str]
) -> bool:
    """Whether an address is in a leaving network and in no other."""
    others = list(staying)
    alone = [each for each in leaving if not any(_contains(other, each) for other in others)]
    if not alone:
        return False
    for text in addresses:
        address = ip_address(text)
        inside = any(address in network for network in alone)
        if inside and not any(address in network for network in others):
            return True
    return False


def _contains(outer: Network, inner: Network) -> bool:
    if isinstance(outer, IPv4Network):
        return isinstance(inner, IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and inner.subnet_of(outer)
