"""Warnings about single values: addresses, networks, amounts, labels of nodes.

Called by the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network

from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.api.string_rules import label_value
from instar.kube.builtin_rules.pods.compute_resources import quantity_value

_DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def address_advice(text: str, path: str) -> list[str]:
    """Return a warning about an address that is not written as RFC 5952 says."""
    try:
        address = ip_address(text)
    except ValueError:
        return []
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        plain = go_quote(str(address.ipv4_mapped))
        return [f"{path}: non-standard IP address {go_quote(text)} is invalid: use {plain}"]
    if address.version == 4 or str(address) == text:
        return []
    return [
        f"{path}: IPv6 address {go_quote(text)} should be in RFC 5952 canonical format "
        f"({go_quote(str(address))})"
    ]


def network_advice(text: str, path: str) -> list[str]:
    """Return a warning about a network with bits beyond its prefix, or not in RFC 5952's form."""
    try:
        network = ip_network(text, strict=False)
        address = ip_address(text.partition("/")[0])
    except ValueError:
        return []
    if address != network.network_address:
        alone = f"{address}/{network.max_prefixlen}"
        return [
            f"{path}: CIDR value {go_quote(text)} is ambiguous in this context (should be "
            f"{go_quote(str(network))} or {go_quote(alone)}?)"
        ]
    if network.version == 4 or str(network) == text:
        return []
    return [
        f"{path}: IPv6 CIDR value {go_quote(text)} should be in RFC 5952 canonical format "
        f"({go_quote(str(network))})"
    ]


def fraction_advice(amounts: Object | None, names: Iterable[str], path: str) -> list[str]:
    """Return warnings about amounts of bytes that are no whole number."""
    return [
        f"{path}[{name}]: fractional byte value {go_quote(amount)} is invalid, must be an integer"
        for name in names
        if (amount := (amounts or {}).get(name)) is not None
        and quantity_value(amount).denominator != 1
    ]


def label_advice(name: str) -> str:
    """Return why a label of nodes should not be used any more; empty if it may be."""
    return _DEPRECATED_LABELS.get(name, "")


def selected_label_advice(
    labels: Object | None, path: str, form: str = "{path}[{name}]"
) -> list[str]:
    """Return warnings about the labels of a map; ``form`` is how its place is written."""
    return [
        f"{form.format(path=path, name=name)}: {why}"
        for name in sorted(labels or ())
        if (why := label_advice(name))
    ]


def expression_advice(
    expressions: Iterable[Object] | None, path: str, *, values: bool = False
) -> list[str]:
    """Return warnings about the keys of ``matchExpressions``, and about ``values`` that no label
    can have."""
    found = []
    for position, expression in enumerate(expressions or ()):
        place, name = f"{path}[{position}]", expression.get("key", "")
        if why := label_advice(name):
            found.append(f"{place}.key: {name} is {why}")
        if values:
            found += [
                f"{place}.values[{index}]: {value} is invalid, {why}"
                for index, value in enumerate(expression.get("values") or ())
                for why in label_value(value)
            ]
    return found
