"""Counts the objects that set certain fields, at every version whose schema has them.

``instar fields`` calls it before it removes a field and while it lists deprecated ones. An object
shows a field only at versions that have it, so a count at the storage version alone would miss
fields of other versions. ``field_census.py`` counts all fields at one version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from instar.base import offload
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.apply.field_usage import FieldTally, FieldUse, is_owned
from instar.tools.migrator.live_crd import LiveCrd, key_of
from instar.tools.migrator.versions.field_removal import FieldHolders
from instar.wire.client.client import Client


@dataclass(frozen=True, slots=True)
class HolderCensus:
    """How many objects set each field, of all that were counted."""

    holders: Mapping[str, FieldHolders]
    total: int
    revision: str
    """Every write up to it was counted."""

    def of(self, path: str) -> FieldHolders:
        return self.holders[path]


async def count_holders(
    client: Client, live: LiveCrd, fields: Mapping[str, Collection[str]]
) -> HolderCensus:
    """Count the objects that set fields. ``fields``: each path with the versions that have it.
    Raises ``ApiError`` if a version cannot be listed.
    """
    versions = _versions_to_read(live, fields)
    tallies: dict[str, FieldTally] = {}
    revisions: list[str] = []
    for version in versions or live.read_versions[:1]:
        known = live.crd.version(version)
        tallies[version] = FieldTally(None if known is None else known.schema)
        async for page in client.pages(live.path(version)):
            revisions.append(str((page.get("metadata") or {}).get("resourceVersion") or ""))
            items = page.get("items") or []
            await offload.run_in_thread(partial(_add, tallies[version], items))
    found = {
        path: _holders(live, path, having, {v: tallies[v] for v in versions if v in having})
        for path, having in fields.items()
    }
    total = max((tally.total for tally in tallies.values()), default=0)
    return HolderCensus(found, total, min(revisions, key=_order, default=""))


async def set_since(
    client: Client, live: LiveCrd, path: str, versions: Collection[str], revision: str
) -> list[str]:
    """Return the objects written after ``revision`` whose managers own the field at one of these
    versions. Managers are recorded also where no version shows the field any more.
    """
    found = []
    schemas = {item.name: item.schema or {} for item in live.crd.versions if item.name in versions}
    async for page in client.metadata_pages(live.path(live.write_version)):
        for item in page.get("items") or []:
            metadata = item["metadata"]
            if _order(str(metadata.get("resourceVersion") or "")) <= _order(revision):
                continue
            entries = metadata.get("managedFields") or ()
            for version, schema in schemas.items():
                wanted = f"{live.crd.group}/{version}"
                owned = [entry for entry in entries if entry.get("apiVersion") == wanted]
                if is_owned(owned, schema, path):
                    found.append(key_of(item))
                    break
    return found


def _versions_to_read(live: LiveCrd, fields: Mapping[str, Collection[str]]) -> list[str]:
    """Return the served versions that together show every field. Without a webhook all versions
    that have a field show it in the same objects, so one of them is enough.
    """
    if live.crd.conversion.strategy != "None":
        return [name for name in live.read_versions if any(name in v for v in fields.values())]
    chosen: list[str] = []
    for having in fields.values():
        served = [name for name in live.read_versions if name in having]
        if served and not any(name in having for name in chosen):
            chosen.append(served[0])
    return chosen


def _holders(
    live: LiveCrd, path: str, having: Collection[str], tallies: Mapping[str, FieldTally]
) -> FieldHolders:
    unserved = tuple(name for name in having if name not in live.read_versions)
    if tallies and live.crd.conversion.strategy == "None":
        unserved = ()
    version = max(tallies, key=lambda name: tallies[name].of(path).objects, default="")
    if not version:
        return FieldHolders(FieldUse(path), 0, "", unserved, is_elsewhere=False)
    tally, elsewhere = tallies[version], version != live.write_version
    return FieldHolders(tally.of(path), tally.total, version, unserved, elsewhere)


def _add(tally: FieldTally, objects: Sequence[Object]) -> None:
    for obj in objects:
        tally.add(obj)


def _order(revision: str) -> int:
    return int(revision) if revision.isdecimal() else 0
