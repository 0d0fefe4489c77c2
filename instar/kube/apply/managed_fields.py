"""Codec of ``metadata.managedFields``: wire form ↔ table of managers.

Called by apply, ownership tracking and the migrator. Defines when two writes have the same manager,
the order of entries, how many old entries are kept, and the errors of invalid entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from instar.base.times import time_text
from instar.kube.apply.field_set import BadFieldSet, FieldSet, parse, union

APPLY, UPDATE = "Apply", "Update"
FIELDS_TYPE = "FieldsV1"
OLD_UPDATES_MANAGER = "ancient-changes"
MOST_UPDATE_MANAGERS = 10
MANAGER_LENGTH = 128


class BadManagedFields(ValueError):
    """The entries are invalid; the message is upstream's."""


class ManagerKey(NamedTuple):
    """Identity of a manager. Apply entries ignore the version."""

    manager: str
    operation: str
    api_version: str
    subresource: str


class ManagedFieldsEntry(NamedTuple):
    """The fields that one manager owns, in the version it was recorded in."""

    fields: FieldSet
    api_version: str
    time: str | None


Managers = dict[ManagerKey, ManagedFieldsEntry]


def identify(manager: str, operation: str, api_version: str, subresource: str) -> ManagerKey:
    """Return the key under which a manager's entry is kept."""
    return ManagerKey(manager, operation, "" if operation == APPLY else api_version, subresource)


def decode(managed_fields: Iterable[Mapping[str, Any]] | None) -> Managers:
    """Return the table of managers. Raises ``BadManagedFields``."""
    out: Managers = {}
    for position, raw in enumerate(managed_fields or ()):
        if raw.__class__ is not dict and not isinstance(raw, Mapping):
            raise BadManagedFields(f"managed fields entry {position} is not an object")
        operation, api_version = raw.get("operation"), raw.get("apiVersion")
        if operation not in (APPLY, UPDATE):
            raise BadManagedFields("operation must be `Apply` or `Update`")
        if not api_version:
            raise BadManagedFields("apiVersion must not be empty")
        if raw.get("fieldsType") != FIELDS_TYPE:
            raise _wrong_type(raw.get("fieldsType"), position)
        identity = identify(
            raw.get("manager") or "", operation, api_version, raw.get("subresource") or ""
        )
        try:
            fields = _parsed(raw.get("fieldsV1"))
        except BadFieldSet as problem:
            raise BadManagedFields(f"error decoding versioned set: {problem}") from problem
        out[identity] = ManagedFieldsEntry(fields, api_version, _seconds(raw.get("time")))
    return out


_LONGEST_KEPT = 16 << 10
"""Maximum bytes of a cached set; larger ones are rarely shared by objects."""


def _parsed(raw: Any) -> FieldSet:
    """Parse with a cache: objects of one kind mostly share their field sets, and sets are
    immutable."""
    if not isinstance(raw, dict):
        return parse(raw)
    text = orjson.dumps(raw)
    return _parsed_text(text) if len(text) <= _LONGEST_KEPT else parse(raw)


@lru_cache(maxsize=512)
def _parsed_text(text: bytes) -> FieldSet:
    return parse(orjson.loads(text))


def _wrong_type(fields_type: Any, position: int) -> BadManagedFields:
    if not fields_type:
        return BadManagedFields(f"missing fieldsType in managed fields entry {position}")
    return BadManagedFields(
        f'invalid fieldsType "{fields_type}" in managed fields entry {position}'
    )


def _seconds(time: Any) -> str | None:
    """Return UTC with whole seconds, so that text order is time order."""
    if time is not None and not isinstance(time, str):
        raise BadManagedFields("time is not a string")
    if not time or (len(time) == 20 and time.endswith("Z")):
        return time or None
    try:
        return time_text(datetime.fromisoformat(time))
    except (ValueError, OverflowError) as problem:
        raise BadManagedFields(str(problem)) from problem


def encode(managers: Managers) -> list[dict[str, Any]]:
    """Return the entries in upstream's order, keys sorted as its storage writes them."""
    table = managers.items()
    return [
        encode_entry(identity, entry)
        for identity, entry in (sorted(table, key=_wire_order) if len(table) > 1 else table)
    ]


def encode_entry(identity: ManagerKey, entry: ManagedFieldsEntry) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "apiVersion": entry.api_version,
        "fieldsType": FIELDS_TYPE,
        "fieldsV1": entry.fields,
        "manager": identity.manager,
        "operation": identity.operation,
    }
    if identity.subresource:
        raw["subresource"] = identity.subresource
    if entry.time is not None:
        raw["time"] = entry.time
    return raw


def _wire_order(item: tuple[ManagerKey, ManagedFieldsEntry]) -> tuple[str, ...]:
    identity, entry = item
    return (
        identity.operation,
        entry.time or "",
        identity.manager,
        entry.api_version,
        identity.subresource,
    )


def cap_update_entries(managers: Managers) -> Managers:
    """Limit Update entries to ten: the oldest of a version are merged into one."""
    updaters = [owner for owner in managers if owner.operation == UPDATE]
    excess = len(updaters) - MOST_UPDATE_MANAGERS
    if excess <= 0:
        return managers
    out = dict(managers)
    updaters.sort(key=lambda owner: (managers[owner].time or "", owner))
    first_of_version: dict[str, ManagerKey] = {}
    for owner in updaters:
        if excess == 0:
            break
        entry = managers[owner]
        bucket = identify(OLD_UPDATES_MANAGER, UPDATE, entry.api_version, "")
        first = first_of_version.setdefault(entry.api_version, owner)
        if first is owner:
            continue
        if bucket not in out:
            out[bucket] = out.pop(first)
        source = out.pop(first if owner == bucket else owner)
        kept = out[bucket]
        out[bucket] = ManagedFieldsEntry(
            union(source.fields, kept.fields), kept.api_version, entry.time
        )
        excess -= 1
    return out


def is_reset(managed_fields: Any) -> bool:
    """Return whether the list resets ownership: ``[]`` and ``[{}]`` do, absent and null do not."""
    if managed_fields is None:
        return False
    return not managed_fields or managed_fields == [{}]


def only_times_differ(old: Any, new: Any) -> bool:
    """Return whether only the times differ; then a write that changes nothing else keeps the old
    list."""
    if not old or not new or len(old) != len(new):
        return False
    for one, other in zip(old, new, strict=True):
        if one.keys() - _TIME != other.keys() - _TIME:
            return False
        for name, value in one.items():
            if name != "time" and other[name] != value:
                return False
    return True


_TIME = frozenset({"time"})


def manager_from_user_agent(user_agent: str) -> str:
    """Return the program's name from a User-Agent; ``unknown`` if it has none."""
    name = "".join(char for char in user_agent.partition("/")[0] if char.isprintable())
    while len(name.encode()) > MANAGER_LENGTH:
        name = name[:-1]
    return name or "unknown"
