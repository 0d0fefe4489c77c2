"""Applies webhook configurations to a cluster, by server-side apply, so that fields of other
managers stay.

``instar webhook --configure`` calls it.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.wire.client.client import Client

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_MANAGER = "instar-webhook"


async def configure(client: Client, document: Object) -> str:
    """Apply the configurations; return one text per change."""
    plural, name = f"{str(document['kind']).lower()}s", document["metadata"]["name"]
    path = f"{_GROUP}/{plural}/{name}"
    await client.patch(path, document, type="apply", fieldManager=_MANAGER, force=True)
    return f"{document['kind']} {name} written"
