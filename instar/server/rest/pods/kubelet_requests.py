"""What a kubelet is asked: the address of its Node, and the URL of a pod's logs, exec, attach,
port-forward, or of a proxied request. Pure.

``pod_verbs.py`` and ``proxies.py`` call it; ``KubeletConnections`` is what sends the requests
(``server/aggregation/kubelets.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from instar.base.json_values import Object
from instar.server.http.messages import Request, Response

_LOG_OPTIONS = (
    *("follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes"),
    "stream",
)
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""Options of exec and attach, and their names in a kubelet's URL."""


class KubeletConnections(Protocol):
    """Sends requests to kubelets."""

    address_types: Sequence[str]

    async def pass_on(self, request: Request, host: str, port: int, uri: str) -> Response:
        """Send the request to a kubelet under another URL, and stream the response. Raises an
        ``ApiError`` where the kubelet cannot be reached."""
        ...


def kubelet_address(node: Object, types: Sequence[str]) -> tuple[str, int] | None:
    """Host and port of a Node's kubelet; None for a Node that names no port, as one without a
    kubelet does."""
    status: Any = node.get("status") or {}
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    found = {each.get("type"): each.get("address") for each in status.get("addresses") or ()}
    host = next((found[name] for name in types if found.get(name)), None)
    port = endpoint.get("Port")
    return (host, port) if host and isinstance(port, int) and 0 < port < 65536 else None


def log_uri(pod: Object, container: str, request: Request) -> str:
    options = {name: request.one(name) for name in _LOG_OPTIONS if request.one(name)}
    return _uri("containerLogs", pod, container, list(options.items()))


def stream_uri(subresource: str, pod: Object, container: str, request: Request) -> str:
    """The URL of exec, attach and portforward."""
    if subresource == "portforward":
        ports = [("port", port) for port in request.query.get("ports", ())]
        return _uri("portForward", pod, "", ports)
    options = [(short, "1") for name, short in _STREAMS.items() if request.flag(name)]
    if subresource == "exec":
        options += [("command", word) for word in request.query.get("command", ())]
    return _uri(subresource, pod, container, options)


def _uri(kind: str, pod: Object, container: str, options: list[tuple[str, str]]) -> str:
    metadata = pod["metadata"]
    parts = [kind, metadata["namespace"], metadata["name"], *filter(None, (container,))]
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(options)}" if options else path


def proxied_uri(request: Request) -> str:
    """What follows ``/proxy`` in the client's URL, with its query."""
    path, _, query = request.uri.decode("latin-1").partition("?")
    rest = path.partition("/proxy")[2] or "/"
    return f"{rest}?{query}" if query else rest
