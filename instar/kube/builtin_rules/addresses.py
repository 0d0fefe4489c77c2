"""Validates IP addresses and networks in text, with upstream's messages.

Called by ``services.py``, ``networking.py``, ``cluster.py`` and ``ranges.py``.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from instar.base.field_errors import FieldError, invalid

NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def family_of(text: str) -> str:
    """Return ``IPv4``, ``IPv6``, or an empty text if it is not an address."""
    try:
        return f"IPv{ip_address(text).version}"
    except ValueError:
        return ""


def address_errors(text: str, path: str) -> list[FieldError]:
    return [] if family_of(text) else [invalid(path, text, NOT_AN_ADDRESS)]


def network_errors(text: str, path: str) -> list[FieldError]:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return [invalid(path, text, NOT_A_NETWORK)]
    return [] if "/" in text else [invalid(path, text, NOT_A_NETWORK)]


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
