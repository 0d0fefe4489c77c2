"""Cleans an object that mutating admission changed: metadata, namespace, managedFields, pruning.

``write.py`` and ``update_attempt.py`` call it after admission. A webhook may have written anything,
such as metadata of the wrong type; this module repairs what upstream repairs, and refuses what
upstream refuses.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.apply.managed_fields import BadManagedFields, decode
from instar.kube.schema.metadata.object_meta import drop_malformed
from instar.server.registry.resources.admission import Operation
from instar.server.registry.resources.resource import Target
from instar.server.registry.verbs.metadata import (
    check_namespace,
    check_unrevised,
    dedupe_owners,
    keep_server_fields,
)

_OWNERSHIP_LOST = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an "
    "outdated mutating admission controller; please fix your requests: "
)


Owned = list[Object] | None
"""``metadata.managedFields``."""


def readmit_new(operation: Operation, owned: Owned) -> None:
    """Clean a new object. ``owned`` are its managedFields before admission."""
    metadata = _repaired(operation, owned)
    if not operation.dry_run:
        check_unrevised(metadata)


def readmit_changed(operation: Operation, owned: Owned) -> None:
    """Clean an updated object. ``owned`` are its managedFields before admission."""
    assert operation.old is not None
    metadata = _repaired(operation, owned)
    keep_server_fields(metadata, operation.old["metadata"])


def prune(target: Target, obj: Object) -> None:
    """Drop, in place, the fields that the schema does not have, after the last plugin has seen
    them. Built-in kinds were decoded by their types, which leaves no unknown field."""
    if not target.serving.builtin:
        target.serving.strategy.after_conversion(obj, target.version)


def _repaired(operation: Operation, owned: Owned) -> Object:
    obj, target = operation.obj, operation.target
    assert obj is not None
    given = obj.get("metadata")
    metadata: Object = drop_malformed(given) if isinstance(given, dict) else {}
    obj["metadata"], obj["apiVersion"] = metadata, target.version.api_version
    check_namespace(metadata, target)
    dedupe_owners(metadata, operation.warn, patched=True)
    try:
        decode(metadata.get("managedFields"))
    except BadManagedFields as error:
        operation.warn(f"{_OWNERSHIP_LOST}{error}")
        metadata.pop("managedFields", None)
        if owned:
            metadata["managedFields"] = owned
    return metadata
