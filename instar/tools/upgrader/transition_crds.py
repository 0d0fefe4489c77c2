"""Builds the CRDs that an upgrade applies: a transitional one, the release's, and the one to roll
back to. Pure.

``upgrade.py`` and rehearsals call it. A release that drops a version must not be applied while
objects may be stored in that version. The API server refuses the release only if ``storedVersions``
names the version, and that list can be wrong. So the transitional CRD (``bridge``), the new CRD
with every old version still in it, is applied first; then every object is rewritten, and only then
the CRD of the release is applied.

Versions that the release serves no longer, or whose schema drops fields, stay in the transitional
CRD as they are on the cluster: the migration compares what objects show before and after a rewrite,
and an object that a client writes just before the transitional CRD is applied is seen whole, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from instar.base.json_values import Object, copy_json, same_json
from instar.tools.migrator.rewrite_checks.rewrite_effect import fields_only_in

_SERVER_OWNED = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def crd_to_apply(crd: Object) -> Object:
    """Return the CRD as it is sent: no status, no server-owned metadata, an explicit conversion."""
    body: Object = copy_json({name: crd[name] for name in ("apiVersion", "kind", "spec")})
    metadata = {k: v for k, v in (crd.get("metadata") or {}).items() if k not in _SERVER_OWNED}
    body["metadata"] = metadata
    body["spec"].setdefault("conversion", {"strategy": "None"})
    return body


def bridge(new: Object, live: Object) -> Object:
    """Return the transitional CRD: the new CRD with every version of the cluster's CRD, and with
    the narrowed versions as the cluster has them.
    """
    body = _with_versions(new, live, [version["name"] for version in live["spec"]["versions"]])
    known = {version["name"]: version for version in live["spec"]["versions"]}
    narrowed = narrowed_versions(new, live)
    body["spec"]["versions"] = [
        copy_json({**known[version["name"]], "storage": version["storage"]})
        if version["name"] in narrowed
        else version
        for version in body["spec"]["versions"]
    ]
    return body


def narrowed_versions(new: Object, live: Object) -> list[str]:
    """Return the versions of both CRDs in which the new one shows less, if objects will be
    rewritten; without a rewrite their stored bytes stay as they are.
    """
    if not moves_objects(new, live):
        return []
    after = {version["name"]: version for version in new["spec"]["versions"]}
    return [
        version["name"]
        for version in live["spec"]["versions"]
        if version["name"] in after and _shows_less(after[version["name"]], version)
    ]


def moves_objects(new: Object, live: Object) -> bool:
    """Return whether objects must be rewritten between the two CRDs."""
    stored = (live.get("status") or {}).get("storedVersions") or ()
    storage = _storage(new)
    return (
        storage != _storage(live)
        or any(version != storage for version in stored)
        or bool(transitional_versions(new, live))
    )


def _shows_less(after: Object, before: Object) -> bool:
    if before["served"] and not after["served"]:
        return True
    wide, narrow = _schema(before), _schema(after)
    return any(True for _ in fields_only_in(wide, narrow))


def _schema(version: Object) -> Object:
    found: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def _storage(crd: Object) -> str:
    return next((str(v["name"]) for v in crd["spec"]["versions"] if v["storage"]), "")


def way_back(old: Object, live: Object) -> Object:
    """Return the old CRD, plus the versions (unserved) in which objects may be stored since. A
    webhook that converts those versions stays, because conversion None would only change
    ``apiVersion``.
    """
    stored = (live.get("status") or {}).get("storedVersions") or ()
    back = _with_versions(old, live, stored, served=False)
    kept = len(back["spec"]["versions"]) > len(old["spec"]["versions"])
    if kept and loses_webhook(old, live):
        back["spec"]["conversion"] = copy_json(live["spec"]["conversion"])
    return back


def _with_versions(
    crd: Object, live: Object, stored: Iterable[str], *, served: bool | None = None
) -> Object:
    out = crd_to_apply(crd)
    versions = out["spec"]["versions"]
    names = {version["name"] for version in versions}
    known = {version["name"]: version for version in live["spec"]["versions"]}
    for name in stored:
        if name in names or name not in known:
            continue
        kept = copy_json({**known[name], "storage": False})
        if served is not None:
            kept["served"] = served
        versions.append(kept)
    return out


def transitional_versions(new: Object, live: Object) -> list[str]:
    """Return the versions that only the transitional CRD has."""
    names = {version["name"] for version in new["spec"]["versions"]}
    known = [version["name"] for version in live["spec"]["versions"]]
    return [name for name in known if name not in names]


def loses_webhook(new: Object, live: Object) -> bool:
    """Return whether the new CRD drops the webhook: a server-side apply would leave part of it."""
    before = live["spec"].get("conversion") or {}
    after = new["spec"].get("conversion") or {}
    return before.get("strategy") == "Webhook" and after.get("strategy", "None") != "Webhook"


def same_crd(one: Object, other: Object) -> bool:
    """Return whether two CRDs are equal in spec, labels and annotations."""
    return same_json(_essence(one), _essence(other))


def _essence(crd: Object) -> Object:
    metadata = crd.get("metadata") or {}
    return {
        "spec": crd["spec"],
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
    }
