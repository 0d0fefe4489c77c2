"""Addresses and networks that Kubernetes once accepted in ambiguous forms."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.builtin_rules.addresses import (
    address_errors,
    canonical_address_errors,
    canonical_network_errors,
    network_errors,
)

_NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("010.1.1.1", "must not have leading 0s"),
        ("1.2.3.00", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ("1.2.3", _NOT_AN_ADDRESS),
        ("01.2.3", _NOT_AN_ADDRESS),
        ("", _NOT_AN_ADDRESS),
    ],
)
def test_an_ambiguous_address_is_refused_with_its_reason(text: str, detail: str) -> None:
    [error] = address_errors(text, "ip")

    assert error.detail == detail


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("10.1.0.0/8", "must not have bits set beyond the prefix length"),
        ("010.0.0.0/8", "must not have leading 0s in IP or prefix length"),
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
        ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ("10.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        ("10.0.0.0/x", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
    ],
)
def test_an_ambiguous_network_is_refused_with_its_reason(text: str, detail: str) -> None:
    [error] = network_errors(text, "cidr")

    assert error.detail == detail


def test_some_fields_demand_the_canonical_form() -> None:
    [address] = canonical_address_errors("2001:DB8::1", "ip")
    [network] = canonical_network_errors("2001:DB8::/32", "cidr")

    assert address.detail == 'must be in canonical form ("2001:db8::1")'
    assert network.detail == 'must be in canonical form ("2001:db8::/32")'


@given(st.ip_addresses(v=4) | st.ip_addresses(network="2001:db8::/32"))
def test_every_address_is_accepted_as_it_is_printed(address: object) -> None:
    assert canonical_address_errors(str(ip_address(str(address))), "ip") == []


@given(st.ip_addresses(v=4), st.integers(0, 32))
def test_every_network_is_accepted_as_it_is_printed(address: object, bits: int) -> None:
    network = ip_network(f"{address}/{bits}", strict=False)

    assert canonical_network_errors(str(network), "cidr") == []
