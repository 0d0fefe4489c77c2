"""EndpointSlices of an Endpoints object, as upstream mirrors them. Pure.

The controller (``server/registry/controllers/endpoint_mirror.py``) calls it.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from instar.base.json_values import Object
from instar.kube.builtin_rules.derived.packed_subsets import Port, packed

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"
MIRROR = "endpointslicemirroring-controller.k8s.io"
_SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_NOT_COPIED = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)
_MOST_ADDRESSES = 1000
"""Addresses of a subset that are mirrored."""


def is_mirrored(endpoints: Object, service: Object) -> bool:
    """Whether the Endpoints are a user's: the Service has no selector, and they do not opt out."""
    metadata = endpoints["metadata"]
    skipped = (metadata.get("labels") or {}).get(_SKIP) == "true"
    elects = _LEADER in (metadata.get("annotations") or {})
    return (service.get("spec") or {}).get("selector") is None and not (skipped or elects)


def slices_of(endpoints: Object) -> list[Object]:
    """Return the slices, without names: one for each set of ports and type of addresses."""
    found: list[Object] = []
    for subset in packed(endpoints.get("subsets") or ()):
        ports = list(map(_port, subset.ports))
        members: dict[str, dict[tuple[str, str], Object]] = {}
        room = _MOST_ADDRESSES
        for address, ready in subset.addresses:
            endpoint = _endpoint(address, ready=ready)
            if endpoint is None:
                continue
            [shown] = endpoint["addresses"]
            kind = "IPv6" if ":" in shown else "IPv4"
            uid = (address.get("targetRef") or {}).get("uid", "")
            members.setdefault(kind, {}).setdefault((shown, uid), endpoint)
            room -= 1
            if room == 0:
                break
        found += (
            _slice(endpoints, kind, ports, [*each.values()]) for kind, each in members.items()
        )
    return found


def place_of(slice_: Object) -> tuple[str, ...]:
    """Return what two slices of one Endpoints object differ in: type of addresses, and ports."""
    return (slice_.get("addressType", ""), *_as_set(slice_.get("ports")))


def same_slice(present: Object, wanted: Object) -> bool:
    """Whether a stored slice says what the wanted one says."""
    metadata = present["metadata"]
    return (
        place_of(present) == place_of(wanted)
        and _as_set(present.get("endpoints")) == _as_set(wanted["endpoints"])
        and (metadata.get("labels") or {}) == wanted["metadata"]["labels"]
        and (metadata.get("annotations") or {}) == wanted["metadata"].get("annotations", {})
        and metadata.get("ownerReferences") == wanted["metadata"]["ownerReferences"]
    )


def _as_set(items: Any) -> list[str]:
    return sorted(repr(sorted(each.items())) for each in items or ())


def _endpoint(address: Object, *, ready: bool) -> Object | None:
    """Return None for an address that is no IP."""
    try:
        shown = str(ip_address(address.get("ip", "")))
    except ValueError:
        return None
    copied = {
        name: address[name] for name in ("hostname", "nodeName", "targetRef") if address.get(name)
    }
    return {"addresses": [shown], "conditions": {"ready": ready}, **copied}


def _port(port: Port) -> Object:
    name, number, protocol, application = port
    shown = {"name": name, "port": number, "protocol": protocol}
    return {**shown, "appProtocol": application} if application else shown


def _slice(endpoints: Object, kind: str, ports: list[Object], members: list[Object]) -> Object:
    given = endpoints["metadata"]
    labels = {**(given.get("labels") or {}), SERVICE_NAME: given["name"], MANAGED_BY: MIRROR}
    copied = given.get("annotations") or {}
    annotations = {name: text for name, text in copied.items() if name not in _NOT_COPIED}
    owner = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "name": given["name"],
        "uid": given["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "namespace": given["namespace"],
        "labels": labels,
        "ownerReferences": [owner],
        **({"annotations": annotations} if annotations else {}),
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": kind,
        "endpoints": members,
        "ports": ports,
    }
