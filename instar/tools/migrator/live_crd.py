"""The CRD of a migration, read from the cluster, with the paths of its objects. Pure.

The commands read it once; all modules of this package work on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api import user_agents
from instar.kube.api.crd import Crd, read_crd
from instar.wire.client.paths import path_in

USER_AGENT = user_agents.MIGRATE
"""Value of the User-Agent header, and name of the field manager."""


@dataclass(frozen=True)
class LiveCrd:
    """A CRD as the cluster has it now."""

    crd: Crd
    revision: str
    """The CRD's resourceVersion when it was read."""
    changed: datetime | None
    """When its spec was last written, as far as its managers noted it."""

    @property
    def name(self) -> str:
        return self.crd.name

    @cached_property
    def storage(self) -> str:
        return self.crd.storage_version()

    @cached_property
    def write_version(self) -> str:
        """Return the version at which objects are read and written: the storage version if it is
        served. If no version is served, this is the storage version, and the cluster answers 404.
        """
        served = self.crd.served()
        return served[0] if served and self.storage not in served else self.storage

    @cached_property
    def read_versions(self) -> list[str]:
        """Return every served version, the write version first."""
        first = self.write_version
        return [first, *(version for version in self.crd.served() if version != first)]

    @property
    def old_versions(self) -> list[str]:
        """Return the versions besides the storage version in which objects may still be stored."""
        return [version for version in self.crd.stored_versions if version != self.storage]

    @property
    def leaving(self) -> list[str]:
        """Return the versions that will be removed; references to them should name another
        version.
        """
        return [
            version.name
            for version in self.crd.versions
            if version.name != self.write_version and (version.deprecated or not version.served)
        ]

    def path(self, version: str, key: str = "", subresource: str = "") -> str:
        """Return the path of the collection over all namespaces, or of one object by
        ``namespace/name``.
        """
        return path_in(self.crd, version, key, subresource)


def read_live_crd(obj: Object) -> LiveCrd:
    """Read the JSON of a CRD of the cluster."""
    metadata = obj.get("metadata") or {}
    times = [
        entry.get("time")
        for entry in metadata.get("managedFields") or ()
        if not entry.get("subresource")
    ]
    changed = latest(times) if all(times) else None
    return LiveCrd(read_crd(obj), metadata.get("resourceVersion", ""), changed)


def latest(times: Iterable[str | None]) -> datetime | None:
    """Return the latest of some times; None if there is none."""
    return max((datetime.fromisoformat(text) for text in times if text), default=None)


def key_of(obj: Object) -> str:
    """Return ``namespace/name``, or only the name: the key of an object in journals and reports.
    Stored bytes that no API server wrote may have no name.
    """
    metadata = obj["metadata"]
    namespace, name = metadata.get("namespace"), metadata.get("name") or "(no name)"
    return f"{namespace}/{name}" if namespace else str(name)
