"""The AdmissionRequest: a request as webhooks and expressions are told of it."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.access.attributes import User
from instar.kube.admission.match_rules import MatchedRequest, RequestEndpoint


def request_document(
    asked: MatchedRequest,
    matched: RequestEndpoint,
    user: Object,
    options: Object | None,
    *,
    dry_run: bool,
) -> Object:
    """All of it but ``uid`` and the objects. ``user`` is ``user_info``'s; what is empty is not
    there, but for ``options``."""
    own = asked.endpoint
    found: Object = {"kind": _kind(matched), "resource": _resource(matched)}
    _set(found, "subResource", asked.subresource)
    found |= {"requestKind": _kind(own), "requestResource": _resource(own)}
    _set(found, "requestSubResource", asked.subresource)
    _set(found, "name", asked.name)
    _set(found, "namespace", asked.namespace)
    found["operation"] = asked.operation
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
    """An options object; what is None or empty was not given. ``kind`` is CreateOptions, …"""
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
