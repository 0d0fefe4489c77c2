"""The subsets of an Endpoints object, packed anew: each set of addresses once, with all its ports.

``mirrored_slices.py`` makes slices of them. An address is not ready at a port if any subset with
that port says so. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from instar.base.json_values import Object

MOST_STEPS = 100_000
"""Addresses that packing touches, counted anew for each group of ports. A few MB of subsets can ask
for a thousand times that; then only subsets with the same ports are put together."""

Address = tuple[str, str]
"""IP, and uid of the object that has it."""
Port = tuple[str, int, str, str]
"""Name, number, protocol and application protocol."""
_NO_PORT: Port = ("", -1, "", "")
"""Stands for the ports of a subset without any."""


class PackedSubset(NamedTuple):
    ports: list[Port]
    addresses: list[tuple[Object, bool]]
    """Each with its readiness; the ready ones first."""


def packed(subsets: Iterable[Object]) -> list[PackedSubset]:
    """Return the packed form of the subsets; those without an address are dropped."""
    objects: dict[Address, Object] = {}
    places: list[dict[Address, bool]] = []
    ports: list[list[Port]] = []
    for subset in subsets:
        places.append(_addresses(subset, objects))
        ports.append(list(dict.fromkeys(map(_port, subset.get("ports") or ()))) or [_NO_PORT])
    groups = _by_place(ports)
    if sum(len(places[at]) for members in groups for at in members) > MOST_STEPS:
        groups = _by_ports(ports)
    found: dict[frozenset[Any], tuple[list[Port], dict[Address, bool]]] = {}
    for members, together in groups.items():
        ready = _merged([places[at] for at in members])
        if ready:
            found.setdefault(frozenset(ready.items()), ([], ready))[0].extend(together)
    return [_packed_subset(together, ready, objects) for together, ready in found.values()]


def _packed_subset(
    together: list[Port], ready: dict[Address, bool], objects: dict[Address, Object]
) -> PackedSubset:
    ports = [port for port in dict.fromkeys(together) if port != _NO_PORT]
    in_order = sorted(ready, key=lambda each: not ready[each])
    return PackedSubset(ports, [(objects[each], ready[each]) for each in in_order])


def _addresses(subset: Object, objects: dict[Address, Object]) -> dict[Address, bool]:
    """Return the readiness of the addresses of a subset, and note the objects of new ones."""
    found: dict[Address, bool] = {}
    for member, ready in (("addresses", True), ("notReadyAddresses", False)):
        for each in subset.get(member) or ():
            key = (each.get("ip", ""), (each.get("targetRef") or {}).get("uid", ""))
            objects.setdefault(key, each)
            found[key] = ready
    return found


def _port(port: Object) -> Port:
    name, protocol = port.get("name", ""), port.get("protocol") or "TCP"
    return name, port["port"], protocol, port.get("appProtocol") or ""


def _by_place(ports: list[list[Port]]) -> dict[tuple[int, ...], list[Port]]:
    """Group ports by the subsets that have them."""
    places: dict[Port, list[int]] = {}
    for at, those in enumerate(ports):
        for port in those:
            places.setdefault(port, []).append(at)
    groups: dict[tuple[int, ...], list[Port]] = {}
    for port, members in places.items():
        groups.setdefault(tuple(members), []).append(port)
    return groups


def _by_ports(ports: list[list[Port]]) -> dict[tuple[int, ...], list[Port]]:
    """Group subsets that have the same ports."""
    members: dict[frozenset[Port], list[int]] = {}
    for at, those in enumerate(ports):
        members.setdefault(frozenset(those), []).append(at)
    return {tuple(each): ports[each[0]] for each in members.values()}


def _merged(places: Iterable[Mapping[Address, bool]]) -> dict[Address, bool]:
    found: dict[Address, bool] = {}
    for place in places:
        for address, ready in place.items():
            found[address] = found.get(address, True) and ready
    return found
