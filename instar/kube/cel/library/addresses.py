"""CEL functions for IP addresses and CIDR blocks (``ip()``, ``cidr()``), collected by
``library/__init__.py``.

Each value has one accepted notation; zones and IPv4-mapped IPv6 addresses are refused.
"""

from __future__ import annotations

import ipaddress
from math import ceil
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.kube.cel.checking.cost_ranges import NOTHING, ONE, Range
from instar.kube.cel.functions import (
    TRAVERSAL,
    CallSite,
    CostEstimate,
    Estimator,
    Overload,
    Work,
    function,
    method,
    traversal_cost,
)
from instar.kube.cel.go_netip import Address, parse_address, parse_prefix, read_address
from instar.kube.cel.types import BOOL, INT, STRING, Type, opaque
from instar.kube.cel.values import CelError, Opaque

IP_TYPE = opaque("net.IP")
CIDR_TYPE = opaque("net.CIDR")
_LONGEST = 128
"""More characters than any block has."""
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    cel_type = "net.IP"
    address: Address

    def cel_size(self) -> int:
        return len(self.address.packed)


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """A CIDR block; ``address`` keeps its host bits."""

    cel_type = "net.CIDR"
    address: Address
    bits: int

    def cel_size(self) -> int:
        return ceil(self.bits / 8)

    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.bits), strict=False)


def parse_ip(text: str) -> Ip:
    try:
        address, zone = parse_address(text)
    except ValueError as error:
        raise CelError(
            f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        ) from None
    if zone:
        raise CelError(f"IP address {go_quote(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Ip(address)


def parse_cidr(text: str) -> Cidr:
    problem = "network address parse error during conversion from string"
    try:
        address, bits = parse_prefix(text)
    except ValueError as error:
        raise CelError(f"{problem}: {problem}: {error}") from None
    if _is_mapped(address):
        raise CelError(f"{problem}: IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Cidr(address, bits)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _is_ip(text: str) -> bool:
    found = read_address(text)
    return found is not None and not found[1] and not _is_mapped(found[0])


def _is_cidr(text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    try:
        parse_cidr(text)
    except CelError:
        return False
    return True


def _contains_ip(block: Cidr, ip: Ip) -> bool:
    return ip.address.version == block.address.version and ip.address in block.network()


def _contains_cidr(block: Cidr, other: Cidr) -> bool:
    """Return whether the block contains ``other``: same family, prefix not shorter, first address
    inside."""
    return (
        block.address.version == other.address.version
        and block.bits <= other.bits
        and other.network().network_address in block.network()
    )


def _is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == _BROADCAST
    )


def _is_link_local_multicast(ip: Ip) -> bool:
    if isinstance(ip.address, ipaddress.IPv4Address):
        return ip.address in ipaddress.ip_network("224.0.0.0/24")
    packed = ip.address.packed
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


def _is_canonical(text: str) -> bool:
    return str(parse_ip(text).address) == text


_ADDRESS_BYTES = Range(4, 16)


def _comparison_cost() -> Range:
    return _ADDRESS_BYTES.plus(_ADDRESS_BYTES).scaled(TRAVERSAL)


def _estimated_ip_inside(site: CallSite) -> CostEstimate:
    return CostEstimate(_comparison_cost().plus(_parsing_cost(site)))


def _estimated_block_inside(site: CallSite) -> CostEstimate:
    """Estimate: the address is masked first, and the prefix lengths are compared."""
    more = _ADDRESS_BYTES.scaled(TRAVERSAL).plus(ONE)
    return CostEstimate(_comparison_cost().plus(more).plus(_parsing_cost(site)))


def _parsing_cost(site: CallSite) -> Range:
    """Return the cost of parsing the argument, if it is a text."""
    argument = site.args[0]
    return argument.known().scaled(TRAVERSAL) if argument.type == STRING else NOTHING


def _ip_inside(block: int, _ip: int) -> int:
    return traversal_cost(2 * block)


def _ip_text_inside(block: int, text: int) -> int:
    return traversal_cost(2 * block) + traversal_cost(text)


def _block_inside(block: int, _other: int) -> int:
    return traversal_cost(2 * block) + traversal_cost(block) + 1


def _block_text_inside(block: int, text: int) -> int:
    return _block_inside(block, 0) + traversal_cost(text)


def _parsing_function(name: str, result: Type, impl: Any, factor: int = 1) -> Overload:
    return function(
        name,
        (STRING,),
        result,
        impl,
        work=lambda text: ceil(text * factor * TRAVERSAL),
        estimate=lambda site: CostEstimate(site.args[0].known().scaled(factor * TRAVERSAL)),
        by_name=True,
    )


def _ip_overloads() -> list[Overload]:
    return [
        _parsing_function("ip", IP_TYPE, parse_ip),
        _parsing_function("isIP", BOOL, _is_ip),
        _parsing_function("ip.isCanonical", BOOL, _is_canonical, factor=2),
        function("string", (IP_TYPE,), STRING, lambda ip: str(ip.address)),
        method("family", (IP_TYPE,), INT, lambda ip: ip.address.version),
        method("isUnspecified", (IP_TYPE,), BOOL, lambda ip: ip.address.is_unspecified),
        method("isLoopback", (IP_TYPE,), BOOL, lambda ip: ip.address.is_loopback),
        method("isLinkLocalMulticast", (IP_TYPE,), BOOL, _is_link_local_multicast),
        method("isLinkLocalUnicast", (IP_TYPE,), BOOL, lambda ip: ip.address.is_link_local),
        method("isGlobalUnicast", (IP_TYPE,), BOOL, _is_global_unicast),
    ]


def _containment_method(
    name: str, other: Type, impl: Any, work: Work, estimate: Estimator
) -> Overload:
    return method(name, (CIDR_TYPE, other), BOOL, impl, work=work, estimate=estimate, by_name=True)


def _cidr_overloads() -> list[Overload]:
    ip, block = _estimated_ip_inside, _estimated_block_inside
    return [
        _parsing_function("cidr", CIDR_TYPE, parse_cidr),
        _parsing_function("isCIDR", BOOL, _is_cidr),
        function("string", (CIDR_TYPE,), STRING, lambda c: f"{c.address}/{c.bits}"),
        _containment_method("containsIP", IP_TYPE, _contains_ip, _ip_inside, ip),
        _containment_method(
            "containsIP", STRING, lambda c, t: _contains_ip(c, parse_ip(t)), _ip_text_inside, ip
        ),
        _containment_method("containsCIDR", CIDR_TYPE, _contains_cidr, _block_inside, block),
        _containment_method(
            "containsCIDR",
            STRING,
            lambda c, t: _contains_cidr(c, parse_cidr(t)),
            _block_text_inside,
            block,
        ),
        method("ip", (CIDR_TYPE,), IP_TYPE, lambda c: Ip(c.address)),
        method(
            "masked", (CIDR_TYPE,), CIDR_TYPE, lambda c: Cidr(c.network().network_address, c.bits)
        ),
        method("prefixLength", (CIDR_TYPE,), INT, lambda c: c.bits),
    ]


def overloads() -> list[Overload]:
    return [*_ip_overloads(), *_cidr_overloads()]


def type_names() -> list[tuple[str, Type]]:
    return [(IP_TYPE.name, IP_TYPE), (CIDR_TYPE.name, CIDR_TYPE)]
