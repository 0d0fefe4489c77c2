"""API ``adopt.instar.dev/v1``: puts the objects of a group below the API, and reads them so.

``server/app.py`` calls it after authorization, on servers behind the aggregation layer of a main
cluster. ``instar adopt`` uses it through that layer, by an APIService of its own, with the rights
``create``, ``get`` and ``delete`` for ``groups`` and their subresources. What a request does is in
``registry/adoption``.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import orjson

from instar.base.errors import BadRequest, MethodNotAllowed, NotFound
from instar.kube.api.adoption import GROUP, HOME, MOST_OBJECTS, RESOURCE, VERSION
from instar.server.http.messages import Request, Response
from instar.server.registry.adoption.adopted_group import AdoptedGroup
from instar.server.registry.adoption.history_floor import HistoryFloor
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.storage_errors import as_api_error
from instar.server.rest.responses import json_response
from instar.wire.storage.store import StoreError

_DISCOVERY = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {
            "name": RESOURCE,
            "singularName": "group",
            "namespaced": False,
            "kind": "AdoptedGroup",
            "verbs": ["create", "get"],
        }
    ],
}


class AdoptionEndpoint:
    """Serves the requests of ``instar adopt``."""

    def __init__(self, backend: Backend, catalog: Catalog) -> None:
        self._backend, self._catalog = backend, catalog
        self._floor = HistoryFloor(backend)

    async def respond(self, request: Request) -> Response | None:
        """None for other paths. Raises ``ApiError``."""
        if not request.path.startswith(HOME):
            return None
        parts = [unquote(part) for part in request.path.removeprefix(HOME).split("/") if part]
        if not parts:
            return json_response(200, _DISCOVERY)
        if parts[0] != RESOURCE or not 2 <= len(parts) <= 3:
            raise NotFound("the server could not find the requested resource", details={})
        group = AdoptedGroup(self._backend, self._catalog, self._floor, parts[1])
        request.patience = 0.0  # a copy takes as long as it takes; each request is bounded
        try:
            return json_response(200, await _answer(group, request, *parts[2:]))
        except StoreError as error:
            raise as_api_error(error) from error


async def _answer(group: AdoptedGroup, request: Request, action: str = "") -> Any:
    match request.method, action:
        case "GET", "":
            return await group.document()
        case "GET", "revision":
            return {"revision": await group.revision()}
        case "GET", "objects":
            return await _objects(group, request)
        case "GET", "keys":
            return await group.keys(request.one("resource"))
        case "GET", "created":
            return {"uids": await group.created_uids()}
        case "GET", "copied":
            return await group.copied_uids(request.one("resource"))
        case "POST", "begin":
            body = _body(request)
            await group.begin(_number(body, "above"), discard=body.get("discard") is True)
            return {}
        case "POST", "objects":
            return await group.put(_changes(_body(request)))
        case "POST", "floor":
            return {"floor": await group.begin_history(_number(_body(request), "above"))}
        case "POST", "finish":
            await group.finish()
            return {}
        case "POST", "return":
            await group.give_back()
            return {}
        case "POST", "alone":
            await group.keep_alone()
            return {}
        case "POST", "forget":
            return {"removed": await group.forget()}
    raise MethodNotAllowed(f"there is no {request.method} of {action or RESOURCE}")


async def _objects(group: AdoptedGroup, request: Request) -> Any:
    plural, version = request.one("resource"), request.one("version")
    if request.one("key"):
        return await group.object(plural, version, request.one("key"))
    limit = min(max(request.integer("limit"), 0) or MOST_OBJECTS, MOST_OBJECTS)
    return await group.page(plural, version, request.one("after"), limit, request.integer("since"))


def _body(request: Request) -> dict[str, Any]:
    try:
        document = orjson.loads(request.content())
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest("the body is not a JSON object")
    return document


def _changes(document: dict[str, Any]) -> list[Any]:
    changes = document.get("changes")
    if not isinstance(changes, list) or len(changes) > MOST_OBJECTS:
        raise BadRequest(f'expected {{"changes": […]}} with at most {MOST_OBJECTS}')
    return changes


def _number(document: dict[str, Any], name: str) -> int:
    value = document.get(name)
    if type(value) is not int or not 0 <= value < 2**62:
        raise BadRequest(f"{name} must be a number")
    return value
