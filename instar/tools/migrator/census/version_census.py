"""Counts objects by the version they are stored in: exactly on an instar server, elsewhere as an
estimate through the public API.

Called by ``instar census``, ``instar versions``, ``instar upgrade``, the plan of a migration and
the console. The estimate rests on times: an object written a while after the CRD's last change is
stored at the storage version. Right after the change, an API server that has not seen the change
still writes the old version. managedFields hold times, and an object with a higher resourceVersion
than an object with such a time was written later too. Of all other objects only the possible
versions are known: any client can patch ``status.storedVersions``, so the report calls these
versions assumed.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from instar.base.errors import ApiError, Forbidden, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.migrator.live_crd import LiveCrd, latest
from instar.tools.migrator.object_pages import list_page
from instar.tools.migrator.propagation_delay import SPREAD
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_checks.pass_record import PassRecord
from instar.wire.client.client import Client

ENDPOINT = "/instar/census"
_BRIEF = RetryPolicy(attempts=3)


@dataclass(frozen=True, slots=True)
class StoredVersionCensus:
    """How many objects are stored at each version, and how certain that is."""

    counts: Mapping[str, int]
    """Objects known to be stored at a version."""
    unknown: int = 0
    """Objects that may be stored at any of ``candidates``."""
    candidates: tuple[str, ...] = ()
    exact: bool = True
    how: str = ""
    """Where the numbers come from, for people."""
    counted: bool = True
    """False when the objects could not be looked at: then only ``candidates`` is known."""
    keys: Mapping[str, int] = field(default_factory=dict)
    """Objects by the key they lie under, where some are encrypted or should be."""
    key: str = ""
    """The key that new objects are encrypted with."""
    assumed: bool = False
    """Whether only ``status.storedVersions`` says that the unknown ones are at the storage
    version."""

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + self.unknown

    def stale(self, storage: str) -> int:
        """Return the maximum number of objects that are not at the storage version."""
        return sum(n for version, n in self.counts.items() if version != storage) + self.unknown

    def at_most(self, version: str) -> int:
        possible = self.unknown if version in self.candidates else 0
        return self.counts.get(version, 0) + possible

    def shown(self, version: str) -> str:
        if not self.counted:
            return "?" if version in self.candidates else "0"
        known = self.counts.get(version, 0)
        return (
            str(known) if known == self.at_most(version) else f"{known} to {self.at_most(version)}"
        )

    def to_json(self) -> Object:
        return {
            "exact": self.exact,
            "how": self.how,
            "counted": self.counted,
            "objects": dict(self.counts),
            "unknown": self.unknown,
            "unknownAmong": list(self.candidates),
            "assumed": self.assumed,
            **({"keys": dict(self.keys), "currentKey": self.key} if self.keys else {}),
        }


async def exact_census(client: Client) -> dict[str, StoredVersionCensus] | None:
    """Return every CRD's numbers from instar's own endpoint; None on any other server."""
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
    sealed = document.get("encryption") or {}
    return {name: _exact(item, sealed.get(name) or {}) for name, item in crds.items()}


def _exact(item: Object, sealed: Object) -> StoredVersionCensus:
    return StoredVersionCensus(
        dict(item["objects"]),
        how="counted by instar's store",
        keys=dict(sealed.get("objects") or {}),
        key=str(sealed.get("current", "")),
    )


async def estimate(
    client: Client, live: LiveCrd, *, limit: int = 500, record: PassRecord | None = None
) -> StoredVersionCensus:
    """List every object once, at the first version that can be listed. ``record`` is the record of
    the last complete pass of ``instar migrate``.
    """
    trouble: ApiError | None = None
    for version in live.read_versions:
        bounds = Bounds(live.changed)
        try:
            await _count(client, live.path(version), limit, bounds)
        except ApiError as error:
            trouble = trouble or error
            continue
        return _as_census(live, bounds, record)
    why = "no version is served" if trouble is None else trouble.message
    return StoredVersionCensus(
        {},
        candidates=_possible(live),
        exact=False,
        how=f"the objects cannot be listed now: {why}",
        counted=False,
    )


async def _count(client: Client, path: str, limit: int, bounds: Bounds) -> None:
    token = ""
    while True:
        page, _ = await list_page(client, path, token, limit, _BRIEF, metadata=True)
        for obj in page.get("items") or ():
            bounds.add(obj["metadata"].get("resourceVersion", ""), _last_write(obj))
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return


def _possible(live: LiveCrd) -> tuple[str, ...]:
    """Return the versions that objects may be stored in: all that the API server can decode."""
    return tuple(version.name for version in live.crd.versions)


def _as_census(live: LiveCrd, bounds: Bounds, record: PassRecord | None) -> StoredVersionCensus:
    storage, total = live.storage, bounds.total
    if len(live.crd.versions) == 1:
        how = "the CRD has one version, and every object can be read"
        return StoredVersionCensus({storage: total}, exact=False, how=how)
    if record is not None and record.proves(live):
        how = f"instar migrate rewrote every object (finished {record.finished})"
        return StoredVersionCensus({storage: total}, exact=False, how=how)
    late = bounds.late()
    unknown = total - late
    known = (
        f"objects written {SPREAD.seconds} s and more after the CRD's last change are stored at "
        "the storage version"
    )
    if live.old_versions:
        how = f"an estimate: {known}; of the others only the possible versions are known"
    elif unknown:
        how = (
            f"{counted(unknown, 'object')} at {storage} assumed from storedVersions, which "
            f"nothing proves; of the others, {known}"
        )
    else:
        how = known
    return StoredVersionCensus(
        counts={storage: late},
        unknown=unknown,
        candidates=_possible(live) if unknown else (),
        exact=False,
        how=how,
        assumed=bool(unknown) and not live.old_versions,
    )


class Bounds:
    """Counts the objects that were certainly written late enough; stores one number per object."""

    def __init__(self, changed: datetime | None) -> None:
        self._from = None if changed is None else changed + SPREAD
        self._revisions = array("q")
        self._unnumbered_late = 0
        self._first_late: int | None = None
        self.total = 0

    def add(self, revision: str, written: datetime | None) -> None:
        self.total += 1
        late = self._from is not None and written is not None and written > self._from
        if not revision.isdecimal():
            self._unnumbered_late += late
            return
        number = int(revision)
        self._revisions.append(number)
        if late:
            first = self._first_late
            self._first_late = number if first is None else min(first, number)

    def late(self) -> int:
        if self._first_late is None:
            return self._unnumbered_late
        first = self._first_late
        return self._unnumbered_late + sum(number >= first for number in self._revisions)


def _last_write(obj: Object) -> datetime | None:
    metadata = obj["metadata"]
    entries = metadata.get("managedFields") or ()
    return latest([metadata.get("creationTimestamp"), *(entry.get("time") for entry in entries)])
