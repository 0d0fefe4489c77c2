"""Event that the garbage collector writes about an owner reference across namespaces.

Called by ``collector.py``.
"""

from __future__ import annotations

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.server.registry.controllers.garbage.owner_graph import OwnerReference
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.write import create

_COMPONENT = "garbage-collector-controller"
_OPTIONS = WriteOptions(manager="instar-garbage-collector", field_validation="Ignore")


async def tell_of_stray(
    context: Context, events: Resource, entry: CacheEntry, reference: OwnerReference
) -> None:
    """Write the Event, best effort: the object is collected even if this fails."""
    obj = entry.decode()
    namespace = obj["metadata"].get("namespace", "")
    serving = events.serving
    target = Target(events, serving, events.codec, serving.storage, namespace or "default")
    try:
        await create(context, target, _event(context, obj, namespace, reference), _OPTIONS)
    except ApiError:
        return


def _event(context: Context, obj: Object, namespace: str, reference: OwnerReference) -> Object:
    metadata, now = obj["metadata"], context.timestamp()
    owner = f"{reference.api_version}/{reference.kind}, namespace: {namespace}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "generateName": f"{metadata['name']}.",
            "namespace": namespace or "default",
        },
        "involvedObject": {
            "apiVersion": obj.get("apiVersion", ""),
            "kind": obj.get("kind", ""),
            "namespace": namespace,
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
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
