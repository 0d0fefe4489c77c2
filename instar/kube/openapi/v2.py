"""The OpenAPI v2 document: all groups in one, with fewer keywords than v3.

Called by ``server/endpoints/openapi.py``. The document is as large as all CRDs together, so it can
also be built in parts, one per resource and one shared part, which together equal ``document``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.api.discovery import DiscoveryResource
from instar.kube.openapi import parameters
from instar.kube.openapi.documents import models, own_models, paths, served
from instar.kube.openapi.option_kinds import EVERYWHERE
from instar.kube.openapi.parameters import Parameter
from instar.kube.openapi.reference_style import V2
from instar.kube.openapi.routes import Route


class DocumentPart(NamedTuple):
    """Members of the document's two large objects: paths and definitions."""

    paths: Object
    definitions: Object


def document(resources: Iterable[DiscoveryResource], *, server_version: str) -> Object:
    """Return the document at ``/openapi/v2``: all served versions of all resources."""
    entries = list(served(resources))
    return {
        **frame(server_version),
        "paths": dict(sorted(paths(entries, _operation, _parameter).items())),
        "definitions": models(entries, V2, EVERYWHERE),
    }


def frame(server_version: str) -> Object:
    """Return an OpenAPI v2 document without paths and definitions."""
    return {"swagger": "2.0", "info": {"title": "Kubernetes", "version": server_version}}


def shared_part(builtins: Iterable[DiscoveryResource]) -> DocumentPart:
    """Return the part of all built-in kinds and the models that every resource refers to."""
    entries = list(served(builtins))
    found = dict(sorted(paths(entries, _operation, _parameter).items()))
    return DocumentPart(found, models(entries, V2, EVERYWHERE, scaled=True))


def custom_part(resource: DiscoveryResource) -> DocumentPart:
    """Return the part of one CRD."""
    entries = list(served([resource]))
    definitions: Object = {}
    for _, version in entries:
        definitions |= own_models(resource, version, V2)
    found = dict(sorted(paths(entries, _operation, _parameter).items()))
    return DocumentPart(found, dict(sorted(definitions.items())))


def _operation(route: Route) -> Object:
    found = _BY_ACTION[route.action]
    if route.body:
        body = {"name": "body", "in": "body", "schema": V2.ref(route.body)}
        found = [body if route.action == "delete" else {**body, "required": True}, *found]
    schema = V2.ref(route.response) if route.response else {"type": "string"}
    responses: Object = {
        code: {"description": words, "schema": schema} for code, words in route.statuses
    }
    return {
        "description": route.description,
        "consumes": list(route.consumes),
        "produces": list(route.produces),
        "schemes": ["https"],
        "tags": [route.tag],
        "operationId": route.operation_id,
        "parameters": found,
        "responses": {**responses, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": route.action,
        "x-kubernetes-group-version-kind": route.gvk,
    }


def _parameter(parameter: Parameter) -> Object:
    required = {"required": True} if parameter.location == "path" else {}
    return {
        "uniqueItems": True,
        "type": parameter.type,
        "description": parameter.description,
        "name": parameter.name,
        "in": parameter.location,
        **required,
    }


_BY_ACTION = {
    action: [_parameter(item) for item in items] for action, items in parameters.BY_ACTION.items()
}
