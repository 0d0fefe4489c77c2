"""Warnings about the ports of a pod's containers.

Called by ``pod_specs.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from instar.base.field_errors import go_quote
from instar.base.json_values import Object


def port_advice(containers: Iterable[tuple[str, Object]]) -> list[str]:
    """Return the warnings about the ports of containers, which come with their places."""
    ports = [
        (f"{path}.ports[{position}]", port)
        for path, container in containers
        for position, port in enumerate(container.get("ports") or ())
    ]
    return [*_overlapping(ports), *_repeated_names(ports)]


def _overlapping(ports: Iterable[tuple[str, Object]]) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    for path, port in ports:
        if port.get("hostIP") and not port.get("hostPort"):
            yield f"{path}: hostIP set without hostPort: {_as_struct(port)}"
        others = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for place, other in others:
            if how := _conflict(port, other):
                yield f"{path}: {how} port definition with {place}"
        others.append((path, port))


def _conflict(port: Object, other: Object) -> str:
    """Return how two definitions of one container port and protocol conflict; empty if they do
    not."""
    number, theirs = port.get("hostPort", 0), other.get("hostPort", 0)
    address, their_address = port.get("hostIP", ""), other.get("hostIP", "")
    if (address, number) == (their_address, theirs):
        return "duplicate"
    if not number or not theirs:
        return "overlapping"
    if number == theirs and bool(address) is not bool(their_address):
        return "dangerously ambiguous"
    return ""


def _repeated_names(ports: Iterable[tuple[str, Object]]) -> Iterator[str]:
    known: dict[str, str] = {}
    for path, port in ports:
        name = port.get("name")
        if not name:
            continue
        first = known.setdefault(name, path)
        if first != path:
            yield (
                f"{path}: duplicate port name {go_quote(name)} with {first}, services and probes "
                f"that select ports by name will use {first}"
            )


def _as_struct(port: Object) -> str:
    """Return a port as Go prints its struct."""
    return (
        f"{{Name:{port.get('name', '')} HostPort:{port.get('hostPort', 0)} "
        f"ContainerPort:{port.get('containerPort', 0)} Protocol:{port.get('protocol', '')} "
        f"HostIP:{port.get('hostIP', '')}}}"
    )
