"""Rows of ``instar history``: manager, time and changed paths of each write to an object.

Called by ``server/registry/verbs/history.py`` and the CLI. The writer is the manager with a changed
entry in ``managedFields``. A deletion has no author there, and a time only if it waited for
finalizers or a grace period.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from instar.base import limits
from instar.base.json_values import Object, same_json

_NOISE = ("managedFields", "resourceVersion", "generation")
"""Fields of ``metadata`` that change with every write."""


class ObjectState(NamedTuple):
    """An object as of a revision; ``None`` where it was deleted."""

    revision: int
    stored_version: str
    obj: Object | None
    problem: str = ""
    """Why the object cannot be shown."""


def writes_between(states: Sequence[ObjectState], before: ObjectState | None) -> list[Object]:
    """Return one row per state, oldest first; ``before`` is the state before the first one,
    ``None`` if it is no longer stored."""
    found: list[Object] = []
    for state in states:
        found.append(_row(before, state))
        before = state
    return found


def _row(before: ObjectState | None, state: ObjectState) -> Object:
    row: Object = {"revision": state.revision, "operation": _operation(before, state)}
    old = (before.obj if before is not None else None) or {}
    if state.problem:
        return {**row, "storedVersion": state.stored_version, "problem": state.problem}
    if state.obj is None:
        return {**row, "time": _metadata(old).get("deletionTimestamp"), "managers": []}
    managers = _writers(old, state.obj)
    metadata = _metadata(state.obj)
    times = [str(each["time"]) for each in managers if each.get("time")]
    if not times and row["operation"] == "create":
        times = [str(metadata.get("creationTimestamp") or "")]
    changes = list(changed_paths(without_bookkeeping(old), without_bookkeeping(state.obj)))
    return {
        **row,
        "time": max(times, default="") or None,
        "managers": managers,
        "storedVersion": state.stored_version,
        "uid": metadata.get("uid"),
        "generation": metadata.get("generation"),
        "changes": changes[: limits.HISTORY_CHANGES],
        "moreChanges": max(0, len(changes) - limits.HISTORY_CHANGES),
    }


def _operation(before: ObjectState | None, state: ObjectState) -> str:
    if state.obj is None and not state.problem:
        return "delete"
    if before is None:
        return "earliest"
    return "update" if before.obj is not None or before.problem else "create"


def _writers(old: Object, new: Object) -> list[Object]:
    """Return the managers with a new time in their entry.

    A manager that writes again within a second is recognised by its fields; one that only lost
    fields to another did not write.
    """
    known = {_identity(each): each for each in _managed_fields(old)}
    differing = [
        each for each in _managed_fields(new) if not same_json(known.get(_identity(each)), each)
    ]
    fresh = [
        each for each in differing if known.get(_identity(each), {}).get("time") != each.get("time")
    ]
    names = ("manager", "operation", "subresource", "apiVersion", "time")
    return [
        {name: entry[name] for name in names if entry.get(name)} for entry in fresh or differing
    ]


def _identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in ("manager", "operation", "subresource", "apiVersion"))


def _managed_fields(obj: Object) -> list[Mapping[str, Any]]:
    entries = _metadata(obj).get("managedFields")
    return [each for each in entries if isinstance(each, Mapping)] if entries else []


def _metadata(obj: Object) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def without_bookkeeping(obj: Object) -> Object:
    """Return the object without fields that are irrelevant to the write."""
    kept = {name: value for name, value in _metadata(obj).items() if name not in _NOISE}
    return {**obj, "metadata": kept} if obj else {}


def changed_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield the paths that differ; a list that changed length is named as a whole."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new}):
            if not same_json(old.get(name, _ABSENT), new.get(name, _ABSENT)):
                yield from changed_paths(
                    old.get(name), new.get(name), f"{path}.{name}" if path else name
                )
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (left, right) in enumerate(zip(old, new, strict=True)):
            if not same_json(left, right):
                yield from changed_paths(left, right, f"{path}[{number}]")
    else:
        yield path


_ABSENT = object()
