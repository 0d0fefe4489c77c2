"""IP addresses and CIDR blocks: one notation each, no zones, no IPv4 inside IPv6."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from instar.cel.functions import Overload, Shape, function, method, nominal, per_byte
from instar.cel.types import BOOL, INT, STRING, Type, opaque
from instar.cel.values import CelError, Opaque
from instar.fields import go_quote

IP_TYPE = opaque("net.IP")
CIDR_TYPE = opaque("net.CIDR")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    cel_type = "net.IP"
    address: Address


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """``address`` keeps its host bits."""

    cel_type = "net.CIDR"
    address: Address
    bits: int

    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.bits), strict=False)


def _address(text: str) -> Address:
    if "%" in text:
        raise ValueError(f"IP address {go_quote(text)} with zone value is not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"ParseAddr({go_quote(text)}): unable to parse IP") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return address


def parse_ip(text: str) -> Ip:
    try:
        return Ip(_address(text))
    except ValueError as error:
        raise CelError(
            f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        ) from None


def parse_cidr(text: str) -> Cidr:
    head, slash, bits = text.partition("/")
    prefix = "network address parse error during conversion from string"
    problem = f"{prefix}: netip.ParsePrefix({go_quote(text)})"
    if not slash:
        raise CelError(f"{problem}: no '/'")
    try:
        address = _address(head)
    except ValueError as error:
        raise CelError(f"{problem}: {error}") from None
    canonical = bits.isascii() and bits.isdigit() and str(int(bits)) == bits
    if not canonical or int(bits) > address.max_prefixlen:
        raise CelError(f"{problem}: bad bits after slash: {go_quote(bits)}")
    return Cidr(address, int(bits))


def _valid(parse: Any) -> Any:
    def check(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return check


def _contains_ip(block: Cidr, ip: Ip) -> bool:
    return ip.address.version == block.address.version and ip.address in block.network()


def _contains_cidr(block: Cidr, other: Cidr) -> bool:
    """``other`` lies wholly inside: same family, no shorter a prefix, its start within."""
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


def _text_shape(_value: Shape) -> Shape:
    return Shape(50)


def _ip_overloads() -> list[Overload]:
    return [
        function("ip", (STRING,), IP_TYPE, parse_ip, work=per_byte, estimate=nominal),
        function("isIP", (STRING,), BOOL, _valid(parse_ip), work=per_byte, estimate=nominal),
        function("ip.isCanonical", (STRING,), BOOL, _is_canonical, work=per_byte, estimate=nominal),
        function("string", (IP_TYPE,), STRING, lambda ip: str(ip.address), shape=_text_shape),
        method("family", (IP_TYPE,), INT, lambda ip: ip.address.version),
        method("isUnspecified", (IP_TYPE,), BOOL, lambda ip: ip.address.is_unspecified),
        method("isLoopback", (IP_TYPE,), BOOL, lambda ip: ip.address.is_loopback),
        method("isLinkLocalMulticast", (IP_TYPE,), BOOL, _is_link_local_multicast),
        method("isLinkLocalUnicast", (IP_TYPE,), BOOL, lambda ip: ip.address.is_link_local),
        method("isGlobalUnicast", (IP_TYPE,), BOOL, _is_global_unicast),
    ]


def _cidr_overloads() -> list[Overload]:
    def second(_block: int, text: int) -> float:
        return per_byte(text)

    return [
        function("cidr", (STRING,), CIDR_TYPE, parse_cidr, work=per_byte, estimate=nominal),
        function("isCIDR", (STRING,), BOOL, _valid(parse_cidr), work=per_byte, estimate=nominal),
        function(
            "string", (CIDR_TYPE,), STRING, lambda c: f"{c.address}/{c.bits}", shape=_text_shape
        ),
        method("containsIP", (CIDR_TYPE, IP_TYPE), BOOL, _contains_ip),
        method(
            "containsIP",
            (CIDR_TYPE, STRING),
            BOOL,
            lambda c, t: _contains_ip(c, parse_ip(t)),
            work=second,
        ),
        method("containsCIDR", (CIDR_TYPE, CIDR_TYPE), BOOL, _contains_cidr),
        method(
            "containsCIDR",
            (CIDR_TYPE, STRING),
            BOOL,
            lambda c, t: _contains_cidr(c, parse_cidr(t)),
            work=second,
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
