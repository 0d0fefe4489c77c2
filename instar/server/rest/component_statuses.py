"""ComponentStatuses: computed for each request.

``subresources.py`` routes requests to it. The component ``etcd`` shows the state of the store;
controller-manager and scheduler, which do not exist here, are reported as unreachable.
"""

from __future__ import annotations

import orjson

from instar.base import errors
from instar.base.json_values import Object
from instar.server.http.messages import Response
from instar.server.registry.stored.views import Views
from instar.server.registry.verbs.read import Listing
from instar.server.rest.negotiate import Offer, response_form
from instar.server.rest.responses import check_include, list_response, object_response
from instar.server.rest.subresource_call import SubresourceCall

_ABSENT_COMPONENTS = {"controller-manager": 10257, "scheduler": 10259}
"""Ports at which kube-apiserver expects these components."""


async def do_components(call: SubresourceCall) -> Response:
    """get and list of ComponentStatuses."""
    context, request, target = call.context, call.request, call.target
    form = response_form(request, Offer.BUILTIN)
    include = request.one("includeObject") if form.transform == "Table" else ""
    check_include(include)
    components = _components(context.backend.trouble or "")
    if target.name:
        found = components.get(target.name)
        if found is None:
            raise errors.not_found("", "componentstatus", target.name)
        return await object_response(200, orjson.dumps(found), form, target.version, include)
    views = Views([orjson.dumps(item) for item in components.values()])
    listing = Listing(views, context.backend.cache.revision, "", None)
    return await list_response(listing, form, target.version, include)


def _components(trouble: str) -> dict[str, Object]:
    found = {
        name: _component(
            name,
            f'Get "https://127.0.0.1:{port}/healthz": dial tcp 127.0.0.1:{port}: connect: '
            "connection refused",
        )
        for name, port in _ABSENT_COMPONENTS.items()
    }
    return {**found, "etcd-0": _component("etcd-0", trouble)}


def _component(name: str, trouble: str) -> Object:
    return {
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "conditions": [
            {
                "type": "Healthy",
                "status": "False" if trouble else "True",
                "message": trouble or "ok",
            }
        ],
    }
