"""Validates IP addresses and networks in text, with upstream's messages.

Called by ``services.py``, ``networking.py``, ``cluster.py`` and ``ranges.py``.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from instar.base.field_errors import FieldError, go_quote, invalid

NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_MAPPED = "an IPv4-mapped IPv6 address"
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])")
"""Before a decimal number: Go read such addresses once, and still says why it does not."""


def family_of(text: str) -> str:
    """Return ``IPv4``, ``IPv6``, or an empty text if it is not an address."""
    try:
        return f"IPv{ip_address(text).version}"
    except ValueError:
        return ""


def address_errors(text: str, path: str) -> list[FieldError]:
    """Refuse what is no address or has an ambiguous form."""
    if not family_of(text):
        zeros = family_of(_LEADING_ZEROS.sub("", text)) == "IPv4"
        return [invalid(path, text, "must not have leading 0s" if zeros else NOT_AN_ADDRESS)]
    return [invalid(path, text, f"must not be {_MAPPED}")] if _is_mapped(text) else []


def canonical_address_errors(text: str, path: str) -> list[FieldError]:
    """Refuse an address that is not written as Go prints it, too."""
    found = address_errors(text, path)
    if found or str(ip_address(text)) == text:
        return found
    shown = go_quote(str(ip_address(text)))
    return [invalid(path, text, f"must be in canonical form ({shown})")]


def network_errors(text: str, path: str) -> list[FieldError]:
    """Refuse what is no network or has an ambiguous form."""
    network = _network(text)
    if network is None:
        zeros = _network(_LEADING_ZEROS.sub("", text)) is not None
        detail = "must not have leading 0s in IP or prefix length" if zeros else NOT_A_NETWORK
        return [invalid(path, text, detail)]
    address = text.partition("/")[0]
    if _is_mapped(address):
        return [invalid(path, text, f"must not have {_MAPPED}")]
    if ip_address(address) != network.network_address:
        return [invalid(path, text, "must not have bits set beyond the prefix length")]
    return []


def canonical_network_errors(text: str, path: str) -> list[FieldError]:
    """Refuse a network that is not written as Go prints it, too."""
    found, network = network_errors(text, path), _network(text)
    if found or str(network) == text:
        return found
    return [invalid(path, text, f"must be in canonical form ({go_quote(str(network))})")]


def _network(text: str) -> IPv4Network | IPv6Network | None:
    _, _, bits = text.partition("/")
    if not bits.isdecimal() or bits != str(int(bits)):
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _is_mapped(text: str) -> bool:
    address = ip_address(text)
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def special_errors(text: str, path: str) -> list[FieldError]:
    """Return errors for addresses that are not reachable from elsewhere (loopback, link-local
    …)."""
    try:
        address = ip_address(text)
    except ValueError:
        return [invalid(path, text, "must be a valid IP address")]
    found = []
    if address.is_unspecified:
        found.append(f"may not be unspecified ({text})")
    if address.is_loopback:
        found.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        found.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address.is_multicast and str(address).startswith(("224.0.0.", "ff02:")):
        found.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return [invalid(path, text, detail) for detail in found]
