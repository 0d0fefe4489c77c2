"""Warms up the CRD create path after start, so that the first CRD is not slower than later ones.

Called by ``crds.py`` in an idle moment. The warm-up takes a small sample CRD through the create
path and stops before admission and the store.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.api.crd import GROUP, KIND
from instar.kube.crds.lifecycle import status_sequence
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.verbs.ownership import Ownership

IDLE_SECONDS = 0.3
"""Delay after the start, because many servers in tests end before it."""
_OPTIONS = WriteOptions(manager="kube-apiserver")


async def warm_up(context: Context, crds: Resource) -> None:
    """Run a sample CRD through the create path up to admission."""
    serving = crds.serving
    version, strategy = serving.versions["v1"], serving.strategy
    target = Target(crds, serving, crds.codec, version)
    crd = _sample()
    strategy.decode(crd, version)
    await Ownership(context, target, _OPTIONS).on_create(crd)
    crd["metadata"] |= {"uid": "warm", "creationTimestamp": context.timestamp()}
    strategy.prepare_create(crd, version)
    strategy.check_create(crd, version, lambda text: None)
    for status in status_sequence(crd, [], context.timestamp()):
        new = {**crd, "metadata": dict(crd["metadata"]), "status": status}
        await Ownership(context, target, _OPTIONS, "status").on_update(new, crd)
        await crds.codec.prepare(new, version)


def _sample() -> Object:
    text: Object = {"type": "string", "pattern": "^a", "maxLength": 9, "default": "a"}
    count: Object = {"type": "integer", "minimum": 1, "format": "int32"}
    listed: Object = {"type": "array", "items": {"type": "object", "required": ["b"]}}
    listed["items"]["properties"] = {"b": text}
    properties = {"spec": {"type": "object", "properties": {"a": text, "b": count, "c": listed}}}
    version: Object = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
    }
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": KIND,
        "metadata": {"name": "samples.warm.invalid"},
        "spec": {
            "group": "warm.invalid",
            "scope": "Namespaced",
            "names": {"plural": "samples", "kind": "Sample"},
            "versions": [version, {**version, "name": "v2", "storage": False}],
        },
    }
