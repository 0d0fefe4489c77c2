"""Fields that the server itself sets on a CRD before validation: status, generation,
storedVersions.

Called by ``server/registry/kinds/crds.py`` on create, update and delete. The functions work on the
internal form of a CRD (``kube/api/crd_codec.py``) unless stated otherwise, and return new objects.
"""

from __future__ import annotations

from instar.base.json_values import Object, same_json
from instar.kube.api.crd import CLEANUP_FINALIZER
from instar.kube.crds.conditions import pending_deletion
from instar.kube.crds.defaults import storage_version
from instar.kube.crds.embedded_defaults import with_clean_defaults


def empty_status() -> Object:
    """Return the status of a CRD that was just created."""
    return {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": None,
    }


def prepare_for_create(internal: Object) -> Object:
    """Discard the client's status; set generation 1."""
    status = empty_status()
    storage = storage_version(internal["spec"])
    if storage is not None:
        status["storedVersions"] = [storage]
    return {
        **internal,
        "metadata": {**internal["metadata"], "generation": 1},
        "spec": with_clean_defaults(internal["spec"]),
        "status": status,
    }


def prepare_for_update(new: Object, old: Object) -> Object:
    """Keep the old status, increase the generation with the spec, record a new storage version."""
    generation = old["metadata"].get("generation", 0)
    if not same_json(new["spec"], old["spec"]):
        generation += 1
    status = dict(old["status"])
    stored = list(status.get("storedVersions") or [])
    storage = storage_version(new["spec"])
    if storage is not None and storage not in stored:
        status["storedVersions"] = [*stored, storage]
    return {
        **new,
        "metadata": _with_generation(new["metadata"], generation),
        "spec": with_clean_defaults(new["spec"]),
        "status": status,
    }


def prepare_status_update(new: Object, old: Object) -> Object:
    """Keep the old spec and generation; metadata may change."""
    generation = old["metadata"].get("generation", 0)
    return {
        **new,
        "metadata": _with_generation(new["metadata"], generation),
        "spec": old["spec"],
    }


def mark_deleting(obj: Object, now: str) -> Object:
    """Apply the first DELETE of a CRD, in any of the three forms: timestamp, finalizer,
    condition."""
    metadata = {**obj["metadata"], "deletionTimestamp": now}
    finalizers = list(metadata.get("finalizers") or ())
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    metadata["finalizers"] = finalizers
    return {**obj, "metadata": metadata, "status": pending_deletion(obj.get("status") or {}, now)}


def _with_generation(metadata: Object, generation: int) -> Object:
    out = {**metadata, "generation": generation}
    if not generation:
        del out["generation"]
    return out
