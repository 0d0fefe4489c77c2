"""Stored records of an adopted group: its state, and the uid of each copied object.

``adopted_group.py`` reads and writes them. They are in the store with the objects, so that every
replica knows them and a return months later can tell which objects the main cluster has.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import islice
from typing import NamedTuple

import orjson

from instar.server.registry.adoption.history_floor import put_record
from instar.wire.storage.store import Store

_CHUNK = 5_000
"""Objects of one record: 400 kB of keys and uids, less than what etcd takes."""


class AdoptionState(Enum):
    """What may be done with the objects of a group."""

    NONE = "none"
    """No group was adopted: objects were created here."""
    COPYING = "copying"
    """Objects are put as they were in the main cluster."""
    ADOPTED = "adopted"
    """Clients write here; nothing is put any more."""
    RETURNED = "returned"
    """The main cluster has everything that was written here."""


class AdoptionRecord(NamedTuple):
    """State of a group and the revision at which its history begins."""

    state: AdoptionState = AdoptionState.NONE
    floor: int = 0
    """History of the group begins here."""
    only_here: bool = False
    """Whether the main cluster's etcd has no objects of the group any more."""


async def read_record(store: Store, group: str) -> AdoptionRecord:
    """Return the record of a group; the state ``NONE`` if there is none."""
    found = await store.get(_state_key(group))
    if found is None:
        return AdoptionRecord()
    document = orjson.loads(found.value)
    state = AdoptionState(document["state"])
    return AdoptionRecord(state, int(document["floor"]), bool(document.get("onlyHere")))


async def write_record(store: Store, group: str, record: AdoptionRecord) -> None:
    """Store the record of a group."""
    document = {
        "state": record.state.value,
        "floor": record.floor,
        "onlyHere": record.only_here,
    }
    await put_record(store, _state_key(group), orjson.dumps(document) + b"\n")


async def read_uids(store: Store, group: str) -> dict[str, str]:
    """Return the uids of the copied objects, by key (plural/namespace/name)."""
    found: dict[str, str] = {}
    for record in (await store.range(_uids_prefix(group))).records:
        found.update(orjson.loads(record.value))
    return found


async def write_uids(store: Store, group: str, uids: Iterable[tuple[str, str]]) -> None:
    """Replace the uids. A process that is killed here is run again: the state comes after them."""
    for record in (await store.range(_uids_prefix(group))).records:
        await put_record(store, record.key, None)
    rest, number = iter(uids), 0
    while part := dict(islice(rest, _CHUNK)):
        key = f"{_uids_prefix(group)}{number:06}"
        await put_record(store, key, orjson.dumps(part) + b"\n")
        number += 1


def _state_key(group: str) -> str:
    return f"adoption/{group}/state"


def _uids_prefix(group: str) -> str:
    return f"adoption/{group}/uids/"
