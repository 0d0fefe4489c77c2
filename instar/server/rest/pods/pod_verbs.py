"""Subresources of pods: binding and eviction, and those that need a kubelet.

``subresources.py`` routes requests to it. Logs, exec, attach and portforward go to the kubelet that
the pod's Node names; without one they end with the error that kube-apiserver returns for a kubelet
that cannot be reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any

import orjson

from instar.base import errors
from instar.base.json_values import Object
from instar.server.http.messages import Request, Response
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.verbs.metadata import check_namespace
from instar.server.registry.verbs.read import get
from instar.server.registry.verbs.subresources.admission import admit_connection
from instar.server.registry.verbs.subresources.binding import bind_pod
from instar.server.registry.verbs.subresources.eviction import evict_pod
from instar.server.rest.bodies import typed_body
from instar.server.rest.negotiate import response_form
from instar.server.rest.options import delete_options_of, write_options
from instar.server.rest.pods.kubelet_requests import kubelet_address, log_uri, stream_uri
from instar.server.rest.responses import typed_response
from instar.server.rest.subresource_call import SubresourceCall

Reach = Callable[[SubresourceCall, Resource], Awaitable[Response]]
_DONE = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def do_bind(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request)
    binding = await _posted(request, target, "v1", "Binding")
    if _name_of(binding) != target.name:
        raise errors.BadRequest("name in URL does not match name in Binding object")
    await bind_pod(context, target, binding, write_options(request, "CreateOptions"))
    return typed_response(201, _DONE, form)


async def do_bind_named(
    context: Context, request: Request, bindings: Target, pods: Resource
) -> Response:
    """A binding posted to the collection: the body names the pod."""
    form = response_form(request)
    binding = await _posted(request, bindings, "v1", "Binding")
    target = _target_of(pods, bindings.namespace, _name_of(binding))
    await bind_pod(context, target, binding, write_options(request, "CreateOptions"))
    return typed_response(201, _DONE, form)


async def do_evict(
    context: Context, request: Request, target: Target, budgets: Resource
) -> Response:
    form = response_form(request)
    eviction = await _posted(request, target, "policy/v1", "Eviction", same="policy/v1beta1")
    if _name_of(eviction) != target.name:
        raise errors.BadRequest("name in URL does not match name in Eviction object")
    options = write_options(request, "CreateOptions")
    how = delete_options_of(eviction.get("deleteOptions") or {}, request.asked)
    beside = _target_of(budgets, target.namespace, "")
    await evict_pod(context, target, eviction, beside, how, options)
    return typed_response(201, _DONE, form)


async def _posted(
    request: Request, target: Target, api_version: str, kind: str, same: str = ""
) -> Object:
    """The body, in the namespace of the URL like any object that is created."""
    body = await typed_body(request, api_version, kind, same)
    check_namespace(body.setdefault("metadata", {}), target)
    return body


async def do_log(call: SubresourceCall, nodes: Resource) -> Response:
    request, target = call.request, call.target
    pod = await _pod(call.context, target)
    _check_container(pod, request.one("container"))
    if not pod["spec"].get("nodeName"):
        return Response(204)
    there = kubelet_address(_node_of(pod, nodes), call.kubelets.address_types)
    if there is not None:
        uri = log_uri(pod, _container(pod, request), request)
        return await call.kubelets.pass_on(request, *there, uri)
    raise errors.NotFound(
        f"the server could not find the requested resource ( pods/log {target.name})",
        details={"name": target.name, "kind": "pods/log"},
    )


async def do_stream(call: SubresourceCall, nodes: Resource) -> Response:
    """exec, attach and portforward."""
    request, target = call.request, call.target
    await _admit(call.context, request, target)
    pod = await _pod(call.context, target)
    node = pod["spec"].get("nodeName")
    if not node:
        raise errors.BadRequest(f"pod {target.name} does not have a host assigned")
    there = kubelet_address(_node_of(pod, nodes), call.kubelets.address_types)
    if b"upgrade" not in request.headers:
        raise errors.BadRequest("Upgrade request required")
    if there is not None:
        subresource = request.asked.subresource
        if subresource != "portforward":
            _check_container(pod, request.one("container"))
        uri = stream_uri(subresource, pod, _container(pod, request), request)
        return await call.kubelets.pass_on(request, *there, uri)
    raise errors.Internal(f"error dialing backend: no kubelet answers for node {node}")


async def do_proxy(call: SubresourceCall, nodes: Resource) -> Response:
    await _admit(call.context, call.request, call.target)
    pod = await _pod(call.context, call.target)
    address = (pod.get("status") or {}).get("podIP") or ""
    try:
        allowed = not (ip_address(address).is_loopback or ip_address(address).is_link_local)
    except ValueError:
        allowed = False
    if not allowed:
        raise errors.BadRequest("address not allowed")
    raise errors.ServiceUnavailable(f"error trying to reach service: dial tcp {address}: no route")


def _name_of(body: Object) -> str:
    metadata: Any = body.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


_CONNECTIONS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "exec": ("PodExecOptions", ("stdin", "stdout", "stderr", "tty"), ("container",)),
    "attach": ("PodAttachOptions", ("stdin", "stdout", "stderr", "tty"), ("container",)),
    "portforward": ("PodPortForwardOptions", (), ()),
    "proxy": ("PodProxyOptions", (), ("path",)),
}
"""By subresource: the kind of its options, its boolean options, its text options."""


async def _admit(context: Context, request: Request, target: Target) -> None:
    subresource = request.asked.subresource
    kind, flags, texts = _CONNECTIONS[subresource]
    wanted: Object = {"kind": kind, "apiVersion": "v1"}
    wanted |= {name: True for name in flags if request.flag(name)}
    wanted |= {name: request.one(name) for name in texts if request.one(name)}
    if subresource == "exec" and request.query.get("command"):
        wanted["command"] = list(request.query["command"])
    if subresource == "portforward" and request.query.get("ports"):
        wanted["ports"] = [int(port) for port in request.query["ports"] if port.isdecimal()]
    options = WriteOptions(
        asked=request.asked,
        warn=request.warn,
        annotate=request.annotate,
        seconds_left=request.seconds_left,
    )
    await admit_connection(context, target, wanted, options, subresource)


def _target_of(resource: Resource, namespace: str, name: str) -> Target:
    """An object of another resource in the same namespace, in its stored version."""
    serving = resource.serving
    return Target(resource, serving, resource.codec, serving.storage, namespace, name)


async def _pod(context: Context, target: Target) -> Object:
    pod: Object = orjson.loads(await get(context.backend, target, None))
    return pod


def _node_of(pod: Object, nodes: Resource) -> Object:
    name = pod["spec"]["nodeName"]
    entry = nodes.objects.entries.get(name)
    if entry is None:
        raise errors.not_found("", "nodes", name)
    node: Object = entry.decode()
    return node


def _container(pod: Object, request: Request) -> str:
    """The container that is asked for, or the only one."""
    asked = request.one("container")
    return asked or str(pod["spec"]["containers"][0]["name"])


def _check_container(pod: Object, asked: str) -> None:
    spec, name = pod["spec"], pod["metadata"]["name"]
    lists = ("containers", "initContainers", "ephemeralContainers")
    names = {part: [one["name"] for one in spec.get(part) or ()] for part in lists}
    if not asked and len(names["containers"]) > 1:
        choices = " ".join(names["containers"])
        text = f"a container name must be specified for pod {name}, choose one of: [{choices}]"
        if names["initContainers"]:
            text += f" or one of the init containers: [{' '.join(names['initContainers'])}]"
        raise errors.BadRequest(text)
    if asked and not any(asked in found for found in names.values()):
        raise errors.BadRequest(f"container {asked} is not valid for pod {name}")
