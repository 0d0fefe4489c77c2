"""Event that the garbage collector writes about an owner reference across namespaces.

Called by ``foreign_owners.py``.
"""

from __future__ import annotations

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.server.registry.controllers.garbage.object_facts import Involved
from instar.server.registry.controllers.garbage.owner_graph import OwnerReference
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.verbs.write import create

_COMPONENT = "garbage-collector-controller"
_OPTIONS = WriteOptions(manager="instar-garbage-collector", field_validation="Ignore")


async def write_cross_namespace_event(
    context: Context, events: Resource, involved: Involved, reference: OwnerReference
) -> None:
    """Write the Event, best effort: the object is collected even if this fails."""
    namespace = involved.namespace
    serving = events.serving
    target = Target(events, serving, events.codec, serving.storage, namespace or "default")
    try:
        await create(context, target, _event(context, involved, reference), _OPTIONS)
    except ApiError:
        return


def _event(context: Context, involved: Involved, reference: OwnerReference) -> Object:
    namespace, now = involved.namespace, context.timestamp()
    owner = f"{reference.api_version}/{reference.kind}, namespace: {namespace}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "generateName": f"{involved.name}.",
            "namespace": namespace or "default",
        },
        "involvedObject": {
            "apiVersion": involved.api_version,
            "kind": involved.kind,
            "namespace": namespace,
            "name": involved.name,
            "uid": involved.uid,
        },
        "type": "Warning",
        "reason": "OwnerRefInvalidNamespace",
        "message": f"ownerRef [{owner}, name: {reference.name}, uid: {reference.uid}] "
        f'does not exist in namespace "{namespace}"',
        "source": {"component": _COMPONENT},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "reportingComponent": _COMPONENT,
        "reportingInstance": "",
    }
