"""Builder of the AdmissionRequest document that webhooks and CEL expressions receive.

Called by ``server/registry/admission/request_view.py`` and the reviewer.
"""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.access.attributes import User
from instar.kube.admission.match_rules import MatchedRequest, RequestEndpoint


def request_document(
    request: MatchedRequest,
    matched: RequestEndpoint,
    user: Object,
    options: Object | None,
    *,
    dry_run: bool,
) -> Object:
    """Return the request without ``uid`` and the objects. ``user`` comes from ``user_info``;
    empty fields are left out, except ``options``."""
    own = request.endpoint
    found: Object = {"kind": _kind(matched), "resource": _resource(matched)}
    _set(found, "subResource", request.subresource)
    found |= {"requestKind": _kind(own), "requestResource": _resource(own)}
    _set(found, "requestSubResource", request.subresource)
    _set(found, "name", request.name)
    _set(found, "namespace", request.namespace)
    found["operation"] = request.operation
    found["userInfo"] = user
    found["dryRun"] = dry_run
    found["options"] = options
    return found


def user_info(user: User) -> Object:
    found: Object = {}
    _set(found, "username", user.name)
    _set(found, "uid", user.uid)
    _set(found, "groups", list(user.groups))
    _set(found, "extra", {name: list(values) for name, values in user.extra.items()})
    return found


def options_document(kind: str, **given: Any) -> Object:
    """Return an options object (``kind`` is CreateOptions, …); None and empty values are left
    out."""
    found: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    for name, value in given.items():
        if value not in (None, "", [], {}):
            found[name] = value
    return found


def _kind(endpoint: RequestEndpoint) -> Object:
    return dict(endpoint.kind._asdict())


def _resource(endpoint: RequestEndpoint) -> Object:
    group, version, resource, _ = endpoint
    return {"group": group, "version": version, "resource": resource}


def _set(found: Object, name: str, value: Any) -> None:
    if value:
        found[name] = value
