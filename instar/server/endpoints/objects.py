"""Endpoints about single custom resources: ``/instar/stored/…`` and ``POST /instar/convert/…``.

The first shows at which version an object is stored (``GROUP/RESOURCE/NAMESPACE/NAME``, ``_`` for
no namespace), the second converts objects in the body (``GROUP/RESOURCE``). ``server/app.py`` calls
it after authorization as a get or a create of the resource; nothing is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes, User
from instar.server.http.messages import Request, Response
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.resource import Resource
from instar.server.rest.responses import json_response

_STORED, _CONVERT = "/instar/stored/", "/instar/convert/"
PATHS = {
    "/instar/convert/GROUP/RESOURCE": "`POST`: what conversion makes of the objects in the body; "
    "granted by the right to create such objects, and nothing is written",
    "/instar/stored/GROUP/RESOURCE/NAMESPACE/NAME": "at which version an object is stored "
    "(`_`: no namespace); granted by the right to get the object",
}
"""Path → description; the API reference in the docs is generated from it."""
NO_NAMESPACE = "_"
MOST_OBJECTS = 1_000


class _ObjectRequest(NamedTuple):
    verb: str
    group: str
    plural: str
    namespace: str = ""
    name: str = ""


class ObjectEndpoints:
    """Serves the ``/instar`` endpoints about single objects."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def asked(self, request: Request, user: User) -> Attributes | None:
        """Attributes for authorization; None for other paths."""
        found = _read(request)
        if found is None:
            return None
        resource = self._catalog.find(found.group, found.plural)
        version = "" if resource is None else resource.serving.storage.name
        verb, group, plural, namespace, name = found
        return Attributes(user, verb, group, version, plural, "", namespace, name, request.path)

    async def respond(self, request: Request) -> Response | None:
        found = _read(request)
        if found is None:
            return None
        resource = self._catalog.find(found.group, found.plural)
        if resource is None or resource.serving.builtin:
            raise errors.not_found("", "customresourcedefinitions", f"{found.plural}.{found.group}")
        if found.verb == "get":
            return json_response(200, _stored_version(resource, found))
        return json_response(200, {"objects": await _convert_objects(resource, request)})


def _read(request: Request) -> _ObjectRequest | None:
    path = request.path
    if path.startswith(_STORED) and request.method in ("GET", "HEAD"):
        parts = [unquote(part) for part in path.removeprefix(_STORED).split("/")]
        if len(parts) == 4 and all(parts):
            group, plural, namespace, name = parts
            return _ObjectRequest("get", group, plural, namespace.replace(NO_NAMESPACE, ""), name)
    if path.startswith(_CONVERT) and request.method == "POST":
        parts = [unquote(part) for part in path.removeprefix(_CONVERT).split("/")]
        if len(parts) == 2 and all(parts):
            return _ObjectRequest("create", parts[0], parts[1], request.one("namespace"))
    return None


def _stored_version(resource: Resource, asked: _ObjectRequest) -> dict[str, Any]:
    suffix = f"{asked.namespace}/{asked.name}" if asked.namespace else asked.name
    entry = resource.objects.entries.get(suffix)
    if entry is None:
        raise errors.not_found(asked.group, asked.plural, asked.name)
    return {
        "version": entry.api_version.rpartition("/")[2],
        "bytes": len(entry.stored()),
        "resourceVersion": str(entry.revision),
        "key": None if entry.seal is None else str(entry.seal),
    }


async def _convert_objects(resource: Resource, request: Request) -> list[Object]:
    """Return the converter's result, without pruning and defaults."""
    try:
        document = orjson.loads(request.content())
    except orjson.JSONDecodeError as error:
        raise errors.BadRequest(f"the body is not JSON: {error}") from None
    objects, version = _read_conversion_request(document)
    serving = resource.serving
    known = {f"{serving.group}/{name}" for name in serving.versions}
    for obj in objects:
        if not isinstance(obj, dict) or obj.get("apiVersion") not in known:
            raise errors.BadRequest(
                f"each object must have an apiVersion of {serving.plural}.{serving.group}"
            )
        if obj.get("kind") != resource.crd.names.kind or not isinstance(obj.get("metadata"), dict):
            raise errors.BadRequest(
                f"each object must have kind {resource.crd.names.kind} and metadata"
            )
    if version not in serving.versions:
        raise errors.BadRequest(f"{serving.plural}.{serving.group} has no version {version}")
    return await serving.converter.convert(objects, f"{serving.group}/{version}")


def _read_conversion_request(document: Any) -> tuple[list[Any], str]:
    shown = document if isinstance(document, dict) else {}
    objects, version = shown.get("objects"), shown.get("version")
    if not isinstance(objects, list) or not isinstance(version, str):
        raise errors.BadRequest('expected {"objects": […], "version": "…"}')
    if len(objects) > MOST_OBJECTS:
        raise errors.RequestTooLarge(f"at most {MOST_OBJECTS} objects are converted at once")
    return objects, version
