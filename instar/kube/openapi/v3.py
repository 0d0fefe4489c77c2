"""OpenAPI v3: the index and one document per group version.

Called by ``server/endpoints/openapi.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from instar.base.json_values import Object
from instar.kube.api.discovery import DiscoveryResource
from instar.kube.api.names import GroupVersion
from instar.kube.openapi import parameters
from instar.kube.openapi.documents import models, paths, served
from instar.kube.openapi.naming import group_version_path
from instar.kube.openapi.option_kinds import OF_CLIENTS, of_group
from instar.kube.openapi.parameters import Parameter
from instar.kube.openapi.reference_style import V3
from instar.kube.openapi.routes import Route


def group_versions(resources: Iterable[DiscoveryResource]) -> list[GroupVersion]:
    """Return the group versions that have a document, sorted."""
    return sorted({GroupVersion(r.crd.group, version.name) for r, version in served(resources)})


def index(hashes: Mapping[GroupVersion, str]) -> Object:
    """Return the document at ``/openapi/v3``; its hashes let clients cache documents
    indefinitely."""
    paths = {group_version_path(*gv): digest for gv, digest in hashes.items()}
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
            for path, digest in sorted(paths.items())
        }
    }


def content_hash(document: bytes) -> str:
    return hashlib.sha512(document).hexdigest().upper()


def document(resources: Iterable[DiscoveryResource], group: str, version: str) -> Object | None:
    """Return the document of one group version, or ``None`` if nothing is published under it."""
    entries = [
        entry
        for entry in served(r for r in resources if r.crd.group == group)
        if entry[1].name == version
    ]
    if not entries:
        return None
    builtin = any(resource.builtin for resource, _ in entries)
    homes = of_group(group, version) if builtin else OF_CLIENTS
    info = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"} if builtin else info,
        "paths": dict(sorted(paths(entries, _operation, _parameter).items())),
        "components": {"schemas": models(entries, V3, homes)},
    }


def _operation(route: Route) -> Object:
    operation: Object = {
        "tags": [route.tag],
        "description": route.description,
        "operationId": route.operation_id,
        "parameters": _BY_ACTION[route.action],
    }
    if route.body:
        body: Object = {
            "content": {media: {"schema": V3.ref(route.body)} for media in route.consumes}
        }
        operation["requestBody"] = body if route.action == "delete" else {**body, "required": True}
    schema = V3.ref(route.response) if route.response else {"type": "string"}
    content = {media: {"schema": schema} for media in route.produces}
    responses: Object = {
        code: {"description": words, "content": content} for code, words in route.statuses
    }
    operation["responses"] = {**responses, "401": {"description": "Unauthorized"}}
    operation["x-kubernetes-action"] = route.action
    operation["x-kubernetes-group-version-kind"] = route.gvk
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    required = {"required": True} if parameter.location == "path" else {}
    return {
        "name": parameter.name,
        "in": parameter.location,
        "description": parameter.description,
        **required,
        "schema": {"type": parameter.type, "uniqueItems": True},
    }


_BY_ACTION = {
    action: [_parameter(item) for item in items] for action, items in parameters.BY_ACTION.items()
}
