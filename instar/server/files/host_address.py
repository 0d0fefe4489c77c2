"""Address under which other machines reach this server, as kube-apiserver chooses it.

``lifecycle/lifetime.py`` asks for it before it publishes the endpoints of ``default/kubernetes``.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address

_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of documentation networks: a route to them is the default route."""


def advertised_address(wanted: str, host: str) -> str:
    """Return the wanted address; without one the host that is listened on, if other machines can
    reach that; else the address of the interface with the default route. Empty: there is none."""
    return wanted or (host if is_reachable(host) else _of_default_route())


def is_reachable(host: str) -> bool:
    """Return whether the host may be an endpoint: loopback addresses are invalid upstream too."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    local = address.is_loopback or address.is_unspecified or address.is_link_local
    return not (local or address.is_multicast)


def _of_default_route() -> str:
    for family, elsewhere in _ELSEWHERE.items():
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))  # chooses a route, and sends nothing
                found: str = probe.getsockname()[0]
        except OSError:
            continue
        if is_reachable(found):
            return found
    return ""
