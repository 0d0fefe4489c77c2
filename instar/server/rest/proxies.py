"""Proxy subresources of services and nodes.

``subresources.py`` routes requests to it. A Node that names a kubelet is reached. There is no
network of pods behind this server: other requests end with the error that kube-apiserver returns
where it cannot connect.
"""

from __future__ import annotations

from ipaddress import ip_address

import orjson

from instar.base import errors
from instar.base.json_values import Object
from instar.server.http.messages import Response
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.registry.verbs.read import get
from instar.server.rest.pods.kubelet_requests import kubelet_address, proxied_uri
from instar.server.rest.subresource_call import SubresourceCall

_SCHEMES = ("", "http", "https")


async def do_service_proxy(call: SubresourceCall) -> Response:
    name, port = _split(call.target.name, "service")
    service = await _read(call.context, call.target.named(name))
    ports = service["spec"].get("ports") or ()
    if port.isdigit() and not any(str(item.get("port")) == port for item in ports):
        raise errors.ServiceUnavailable(f'no service port {port} found for service "{name}"')
    raise errors.ServiceUnavailable(f'no endpoints available for service "{call.target.name}"')


async def do_node_proxy(call: SubresourceCall) -> Response:
    name, _ = _split(call.target.name, "node")
    node = await _read(call.context, call.target.named(name))
    there = kubelet_address(node, call.kubelets.address_types)
    if there is not None:
        return await _to_kubelet(call, *there)
    addresses = (node.get("status") or {}).get("addresses") or []
    if not addresses:
        raise errors.Unclassified("no preferred addresses found; known addresses: []")
    address = addresses[0].get("address", "")
    raise errors.ServiceUnavailable(f"error trying to reach service: dial tcp {address}: no route")


async def _to_kubelet(call: SubresourceCall, host: str, port: int) -> Response:
    """Pass a request on, unless it would reach this machine or its link."""
    try:
        address = ip_address(host)
        allowed = not (address.is_loopback or address.is_link_local)
    except ValueError:
        allowed = host != "localhost"
    if not allowed:
        raise errors.BadRequest("address not allowed")
    return await call.kubelets.pass_on(call.request, host, port, proxied_uri(call.request))


def _split(text: str, what: str) -> tuple[str, str]:
    """``[scheme:]name[:port]`` → name and port."""
    parts = text.split(":")
    if len(parts) > 3 or (len(parts) == 3 and parts[0] not in _SCHEMES):
        raise errors.BadRequest(f'invalid {what} request "{text}"')
    if len(parts) == 3:
        parts = parts[1:]
    return parts[0], parts[1] if len(parts) > 1 else ""


async def _read(context: Context, target: Target) -> Object:
    found: Object = orjson.loads(await get(context.backend, target, None))
    return found
