"""The CRDs an upgrade writes on its way: the bridge, the goal, the way back. Pure.

A release that drops a version cannot be applied while objects may be stored in it: the API server
refuses. So the new CRD is applied with the old versions still in it, everything is migrated, and
only then the CRD of the release takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable

from instar.base.json_values import Object, copy_json

_SERVER_OWNED = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def applied(crd: Object) -> Object:
    """What is sent: no status, nothing the server decides, and an explicit conversion."""
    body: Object = copy_json({name: crd[name] for name in ("apiVersion", "kind", "spec")})
    metadata = {k: v for k, v in (crd.get("metadata") or {}).items() if k not in _SERVER_OWNED}
    body["metadata"] = metadata
    body["spec"].setdefault("conversion", {"strategy": "None"})
    return body


def bridge(new: Object, live: Object) -> Object:
    """The new CRD, with every version the cluster may still have objects in."""
    stored = (live.get("status") or {}).get("storedVersions") or ()
    return _with_versions(new, live, stored)


def way_back(old: Object, live: Object) -> Object:
    """The CRD as it was, with the versions objects may be stored in since; they stay unserved.
    Whoever converted those goes on doing it: without him they would be read as they lie there."""
    stored = (live.get("status") or {}).get("storedVersions") or ()
    back = _with_versions(old, live, stored, served=False)
    kept = len(back["spec"]["versions"]) > len(old["spec"]["versions"])
    if kept and loses_webhook(old, live):
        back["spec"]["conversion"] = copy_json(live["spec"]["conversion"])
    return back


def _with_versions(
    crd: Object, live: Object, stored: Iterable[str], *, served: bool | None = None
) -> Object:
    out = applied(crd)
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


def dropped(new: Object, live: Object) -> list[str]:
    """Versions that only the bridge keeps."""
    names = {version["name"] for version in new["spec"]["versions"]}
    stored = (live.get("status") or {}).get("storedVersions") or ()
    return [name for name in stored if name not in names]


def loses_webhook(new: Object, live: Object) -> bool:
    """An apply leaves alone what others own: the webhook of before would stay, half."""
    before = live["spec"].get("conversion") or {}
    after = new["spec"].get("conversion") or {}
    return before.get("strategy") == "Webhook" and after.get("strategy", "None") != "Webhook"


def same_crd(one: Object, other: Object) -> bool:
    """As clients see it: what the server notes about it is no matter."""
    return _essence(one) == _essence(other)


def _essence(crd: Object) -> Object:
    metadata = crd.get("metadata") or {}
    return {
        "spec": crd["spec"],
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
    }
