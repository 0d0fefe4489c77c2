"""Splits a CRD change into steps that can be checked one by one. Pure.

``batch.py`` calls it. The order is that of the reviewer's plan: add and serve, flip storage,
migrate, stop serving, remove. A step that changes nothing is left out, and a server accepts the CRD
of every step.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object, copy_json
from instar.tools.rehearsal.model import RehearsalStep, StepKind
from instar.tools.upgrader.transition_crds import crd_to_apply


def steps(live: Object | None, goal: Object, release: str) -> list[RehearsalStep]:
    """Return the steps. ``live`` is the CRD as the server shows it; None if it is new."""
    if live is None:
        versions = tuple(_by_name(goal))
        title = f"create with {', '.join(versions)}"
        return [RehearsalStep(release, StepKind.CREATE, title, crd_to_apply(goal), versions)]
    return list(_changes(live, crd_to_apply(goal), release))


def _changes(live: Object, goal: Object, release: str) -> Iterator[RehearsalStep]:
    before, after = _by_name(live), _by_name(goal)
    stored = (live.get("status") or {}).get("storedVersions") or ()
    old_storage, new_storage = _storage(live), _storage(goal)
    added = tuple(name for name in after if name not in before)
    gone = tuple(name for name in before if name not in after)
    unserved = tuple(
        name
        for name, version in before.items()
        if version.get("served") and not after.get(name, {}).get("served")
    )
    serve = _between(goal, live, storage=old_storage, serve_old=True)
    if _differs(serve, live):
        title = f"add and serve {', '.join(added)}" if added else "apply the new schemas"
        if old_storage != new_storage:
            title += f"; keep storing {old_storage}"
        yield RehearsalStep(release, StepKind.SERVE, title, serve, added)
    if old_storage != new_storage:
        crd = _between(goal, live, storage=new_storage, serve_old=True)
        title = f"flip storage from {old_storage} to {new_storage}"
        yield RehearsalStep(release, StepKind.FLIP, title, crd, (new_storage,))
    if old_storage != new_storage or any(name != new_storage for name in stored):
        title = f"migrate every object to {new_storage}, verify, trim storedVersions"
        yield RehearsalStep(release, StepKind.MIGRATE, title, None, (new_storage,))
    if unserved:
        crd = _between(goal, live, storage=new_storage, serve_old=False)
        yield RehearsalStep(
            release, StepKind.UNSERVE, f"stop serving {', '.join(unserved)}", crd, unserved
        )
    if gone:
        yield RehearsalStep(release, StepKind.REMOVE, f"remove {', '.join(gone)}", goal, gone)


def _between(goal: Object, live: Object, *, storage: str, serve_old: bool) -> Object:
    """Return the target CRD with every old version added."""
    crd: Object = copy_json(goal)
    before, after = _by_name(live), _by_name(goal)
    versions = [*after.values(), *(v for name, v in before.items() if name not in after)]
    crd["spec"]["versions"] = [
        _version(version, before.get(version["name"]), after, storage, serve_old)
        for version in copy_json(versions)
    ]
    return crd


def _version(
    version: Object, old: Object | None, after: dict[str, Object], storage: str, serve_old: bool
) -> Object:
    name = version["name"]
    served = bool(after[name].get("served")) if name in after else False
    if serve_old and old is not None:
        served = served or bool(old.get("served"))
    return {**version, "served": served, "storage": name == storage}


def _differs(one: Object, live: Object) -> bool:
    """Return whether two CRDs differ, apart from defaults that the server fills in."""
    return _essence(one) != _essence(live)


def _essence(crd: Object) -> Object:
    spec = crd["spec"]
    names = spec.get("names") or {}
    return {
        "versions": {
            version["name"]: {**version, "deprecated": bool(version.get("deprecated"))}
            for version in spec["versions"]
        },
        "conversion": (spec.get("conversion") or {}).get("strategy") or "None",
        "scope": spec.get("scope"),
        "kind": names.get("kind"),
        "short": sorted(names.get("shortNames") or ()),
        "preserve": bool(spec.get("preserveUnknownFields")),
    }


def _by_name(crd: Object) -> dict[str, Object]:
    return {version["name"]: version for version in crd["spec"]["versions"]}


def _storage(crd: Object) -> str:
    return next((str(v["name"]) for v in crd["spec"]["versions"] if v.get("storage")), "")
