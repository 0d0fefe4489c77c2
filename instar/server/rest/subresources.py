"""Paths below an object (or beside it) that are verbs of their own: which function answers which.

A kind's subresource that only reads or writes a part of the object needs no row here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from instar.server.access.accounttokens import do_token
from instar.server.rest import podverbs
from instar.server.rest.calls import Call
from instar.server.rest.components import do_components
from instar.server.rest.proxies import do_node_proxy, do_service_proxy
from instar.server.rest.responses import Response

Handler = Callable[[Call], Awaitable[Response]]


async def _bind(call: Call) -> Response:
    return await podverbs.do_bind(call.context, call.request, call.target)


async def _bind_named(call: Call) -> Response:
    pods = call.catalog.builtin("", "pods")
    return await podverbs.do_bind_named(call.context, call.request, call.target, pods)


async def _evict(call: Call) -> Response:
    budgets = call.catalog.builtin("policy", "poddisruptionbudgets")
    return await podverbs.do_evict(call.context, call.request, call.target, budgets)


async def _reach(answer: podverbs.Reach, call: Call) -> Response:
    nodes = call.catalog.builtin("", "nodes")
    return await answer(call.context, call.request, call.target, nodes)


HANDLERS: Mapping[tuple[str, str, str], Handler] = {
    ("", "bindings", ""): _bind_named,
    ("", "componentstatuses", ""): do_components,
    ("", "nodes", "proxy"): do_node_proxy,
    ("", "services", "proxy"): do_service_proxy,
    ("", "serviceaccounts", "token"): do_token,
    ("", "pods", "binding"): _bind,
    ("", "pods", "eviction"): _evict,
    ("", "pods", "log"): partial(_reach, podverbs.do_log),
    ("", "pods", "exec"): partial(_reach, podverbs.do_stream),
    ("", "pods", "attach"): partial(_reach, podverbs.do_stream),
    ("", "pods", "portforward"): partial(_reach, podverbs.do_stream),
    ("", "pods", "proxy"): partial(_reach, podverbs.do_proxy),
}
"""By group, plural and subresource; an empty one is the collection itself."""
