"""Endpoint ``/instar/history`` + path of an object: its past changes, or its state at a revision.

``server/app.py`` calls it after authorization: a user that may get an object may also read its
past. A namespace that was deleted and created again may have other owners, so objects from before
its deletion are shown only to users that may get such objects in every namespace.
"""

from __future__ import annotations

from instar.base import limits
from instar.base.errors import BadRequest, MethodNotAllowed
from instar.server.http.messages import Request, Response
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.verbs.history import last_deletion, object_at, writes_of
from instar.server.rest.request_attributes import ResourcePath
from instar.server.rest.responses import json_response, plain_response

_PREFIX = "/instar/history"
_OBJECTS = (f"{_PREFIX}/api/", f"{_PREFIX}/apis/")
PATHS = {
    f"{_PREFIX}/PATH": "writes to the object at `/PATH`: manager, time and changes (`?limit=`, "
    "`?before=REVISION`), or with `?at=REVISION` the object as it was; granted by the right to get "
    "the object: `instar history`",
}
"""Path → description; the API reference in the docs is generated from it."""
_LONGEST = 19
"""Most digits of a revision."""
_FEW = 50


def past_path(path: str) -> str | None:
    """The object's path in a path of this endpoint; None for other paths."""
    return path[len(_PREFIX) :] if path.startswith(_OBJECTS) else None


async def respond(
    context: Context, request: Request, target: Target, path: ResourcePath, namespaces: Resource
) -> Response:
    """Answer with an object's past states, or with its state at one revision."""
    if request.asked.verb != "get" or path.subresource:
        raise MethodNotAllowed("the past can be read, object by object, and not be changed")
    revision, before = _number(request, "at"), _number(request, "before")
    limit = min(_number(request, "limit") or _FEW, limits.HISTORY_AT_ONCE)
    since = await _visible_since(context, request, namespaces)
    if revision:
        return plain_response(200, await object_at(context.backend, target, revision, since))
    return json_response(200, await writes_of(context.backend, target, before, limit, since))


async def _visible_since(context: Context, request: Request, namespaces: Resource) -> int:
    """The first revision to show: that of the namespace's creation, unless the user may get such
    objects in every namespace."""
    asked, authorizer = request.asked, context.authorizer
    if not asked.namespace:
        return 0
    everywhere = asked._replace(namespace="")
    decision = authorizer.decide(everywhere) or await authorizer.ask(everywhere)
    if decision.allowed:
        return 0
    return await last_deletion(context.backend, namespaces.objects.prefix + asked.namespace)


def _number(request: Request, name: str) -> int:
    text = request.one(name)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST and int(text)):
        raise BadRequest(f"{name}: {text[:40]!r} is no revision or number above 0")
    return int(text)
