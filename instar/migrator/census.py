"""How many objects are stored at which version: exact where the server tells, else an estimate.

What can be known through the public API of another server: an object written after the CRD was
last written must be stored at the storage version. Revisions say so without any clock, because
CRDs and their objects share one counter; timestamps in managedFields say so for more objects.
Of the others only the set of possible versions is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from instar.client.client import Client
from instar.errors import ApiError, Forbidden, NotFound
from instar.migrator.live_crd import LiveCrd, latest
from instar.migrator.pages import list_page
from instar.migrator.retrying import Patience
from instar.plain import Object

ENDPOINT = "/instar/census"


@dataclass(frozen=True, slots=True)
class Census:
    counts: Mapping[str, int]
    """Objects known to be stored at a version."""
    unknown: int = 0
    """Objects that may be stored at any of ``candidates``."""
    candidates: tuple[str, ...] = ()
    exact: bool = True
    how: str = ""
    """Where the numbers come from, for people."""

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + self.unknown

    def stale(self, storage: str) -> int:
        """At most so many objects are not at the storage version."""
        return sum(n for version, n in self.counts.items() if version != storage) + self.unknown

    def at_most(self, version: str) -> int:
        possible = self.unknown if version in self.candidates else 0
        return self.counts.get(version, 0) + possible

    def shown(self, version: str) -> str:
        known = self.counts.get(version, 0)
        return (
            str(known) if known == self.at_most(version) else f"{known} to {self.at_most(version)}"
        )

    def to_json(self) -> Object:
        return {
            "exact": self.exact,
            "how": self.how,
            "objects": dict(self.counts),
            "unknown": self.unknown,
            "unknownAmong": list(self.candidates),
        }


async def exact_census(client: Client) -> dict[str, Census] | None:
    """Every CRD's numbers from instar's own endpoint; None on any other server."""
    try:
        document = await client.get(ENDPOINT)
    except (NotFound, Forbidden):
        return None
    except ApiError as error:
        if error.retryable:
            raise
        return None
    crds = document.get("crds")
    if not isinstance(crds, dict):
        return None
    how = "counted by instar's store"
    return {name: Census(dict(item["objects"]), how=how) for name, item in crds.items()}


async def estimate(client: Client, live: LiveCrd, *, limit: int = 500) -> Census:
    """Lists every object's metadata once; never more than a page in memory."""
    storage = live.storage
    certain = not live.old_versions
    current = unknown = 0
    path, token = live.path(live.write_version), ""
    while True:
        page, _ = await list_page(client, path, token, limit, Patience())
        for obj in page.get("items") or ():
            if certain or _is_newer(obj, live.revision, live.changed):
                current += 1
            else:
                unknown += 1
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            break
    how = (
        "status.storedVersions names one version only, so all must be stored in it"
        if certain
        else "an estimate: objects written after the CRD's last change are stored at the storage "
        "version; of the others only the possible versions are known"
    )
    return Census(
        counts={storage: current},
        unknown=unknown,
        candidates=live.crd.stored_versions if unknown else (),
        exact=False,
        how=how,
    )


def _is_newer(obj: Object, crd_revision: str, changed: datetime | None) -> bool:
    revision = obj["metadata"].get("resourceVersion", "")
    if revision.isdigit() and crd_revision.isdigit() and int(revision) > int(crd_revision):
        return True
    written = _last_write(obj)
    return changed is not None and written is not None and written > changed


def _last_write(obj: Object) -> datetime | None:
    metadata = obj["metadata"]
    entries = metadata.get("managedFields") or ()
    return latest([metadata.get("creationTimestamp"), *(entry.get("time") for entry in entries)])
