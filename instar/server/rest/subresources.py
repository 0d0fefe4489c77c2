"""Table of subresources with handlers of their own, such as pods/eviction and nodes/proxy.

``server/app.py`` looks requests up in it. Subresources that read or write a part of the object,
such as status, are not listed: ``verbs.py`` serves them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from instar.server.access.account_tokens import do_token
from instar.server.http.messages import Response
from instar.server.rest.component_statuses import do_components
from instar.server.rest.pods import pod_verbs
from instar.server.rest.proxies import do_node_proxy, do_service_proxy
from instar.server.rest.subresource_call import SubresourceCall

Handler = Callable[[SubresourceCall], Awaitable[Response]]


async def _bind(call: SubresourceCall) -> Response:
    return await pod_verbs.do_bind(call.context, call.request, call.target)


async def _bind_named(call: SubresourceCall) -> Response:
    pods = call.catalog.builtin("", "pods")
    return await pod_verbs.do_bind_named(call.context, call.request, call.target, pods)


async def _evict(call: SubresourceCall) -> Response:
    budgets = call.catalog.builtin("policy", "poddisruptionbudgets")
    return await pod_verbs.do_evict(call.context, call.request, call.target, budgets)


async def _reach(answer: pod_verbs.Reach, call: SubresourceCall) -> Response:
    nodes = call.catalog.builtin("", "nodes")
    return await answer(call, nodes)


HANDLERS: Mapping[tuple[str, str, str], Handler] = {
    ("", "bindings", ""): _bind_named,
    ("", "componentstatuses", ""): do_components,
    ("", "nodes", "proxy"): do_node_proxy,
    ("", "services", "proxy"): do_service_proxy,
    ("", "serviceaccounts", "token"): do_token,
    ("", "pods", "binding"): _bind,
    ("", "pods", "eviction"): _evict,
    ("", "pods", "log"): partial(_reach, pod_verbs.do_log),
    ("", "pods", "exec"): partial(_reach, pod_verbs.do_stream),
    ("", "pods", "attach"): partial(_reach, pod_verbs.do_stream),
    ("", "pods", "portforward"): partial(_reach, pod_verbs.do_stream),
    ("", "pods", "proxy"): partial(_reach, pod_verbs.do_proxy),
}
"""By group, plural and subresource; an empty subresource is the resource itself."""
