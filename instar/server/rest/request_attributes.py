"""Attributes of a request: the resource, verb, namespace and name that its URL and method mean.

``routing.py`` and the auditor call it, before authorization; connections ask ``may_upgrade``. The
module only parses; the authorizers decide whether a request is allowed.
"""

from __future__ import annotations

from urllib.parse import unquote, unquote_to_bytes

from instar.base.errors import BadRequest
from instar.base.fast_dataclass import dataclass
from instar.kube.access.attributes import Attributes, User
from instar.kube.api.selectors import parse_field_selector
from instar.server.http.messages import Request

_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_TUNNELS = (b"exec", b"attach", b"portforward")
_SELECTING_VERBS = ("list", "watch", "deletecollection")


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The parts of a resource URL."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch_prefix: bool = False
    """The deprecated ``/watch/`` form."""


def parse_resource_path(path: str) -> ResourcePath | None:
    """``/api/v1/…`` or ``/apis/G/V/…``; None for anything that names no resource."""
    parts = [unquote(part) for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch_prefix = rest[0] == "watch" and len(rest) > 1
    if watch_prefix:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _is_namespace_part(group, rest):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest[:3], "", "", "")[:3]
    return ResourcePath(group, version, plural, namespace, name, subresource, watch_prefix)


def _is_namespace_part(group: str, rest: list[str]) -> bool:
    """``namespaces/x/status`` and ``/finalize`` are the namespace's own subresources."""
    return not group and len(rest) == 3 and rest[2] in ("status", "finalize")


def attributes_of(request: Request, path: ResourcePath | None, user: User) -> Attributes:
    """Attributes for authorization, audit, admission and metrics."""
    if path is None:
        return Attributes(user, request.method.lower(), path=request.path)
    verb, name, namespace = verb_of(request, path), path.name, path.namespace
    if not name and request.query and verb in ("list", "watch"):
        name = _selected_name(request)
    if path.plural == "namespaces" and path.name and not namespace:
        namespace = path.name
    fields = labels = ""
    if request.query and verb in _SELECTING_VERBS:
        fields, labels = request.one("fieldSelector"), request.one("labelSelector")
    return Attributes(
        user,
        verb,
        path.group,
        path.version,
        path.plural,
        path.subresource,
        namespace,
        name,
        request.path,
        fields,
        labels,
    )


def _selected_name(request: Request) -> str:
    """The name in a field selector ``metadata.name=…``: RBAC may allow a list by name."""
    text = request.one("fieldSelector")
    if not text:
        return ""
    try:
        selector = parse_field_selector(text)
    except BadRequest:
        return ""  # reported when the list is made
    name = (selector.exact("metadata.name") if selector is not None else None) or ""
    return "" if name in (".", "..") or "/" in name or "%" in name else name


def verb_of(request: Request, path: ResourcePath) -> str:
    """get, list, watch, create, update, patch, delete, deletecollection, or empty."""
    verb = _VERBS.get(request.method, "")
    if path.watch_prefix and verb == "get":
        return "watch"
    if path.name or path.subresource:
        return verb
    if verb == "get":
        return "watch" if request.flag("watch") else "list"
    return "deletecollection" if verb == "delete" else verb


def may_upgrade(target: bytes) -> bool:
    """Whether a request may change the protocol of its connection, told by its target alone: a
    watch, or a subresource whose other end is a kubelet or a pod. What follows such a request goes
    to its handler instead of being read as the next request."""
    path, _, query = target.partition(b"?")
    parts = unquote_to_bytes(path).split(b"/")
    return b"watch" in query or b"watch" in parts or b"proxy" in parts or parts[-1] in _TUNNELS
