"""One object as it was read: what a write is guarded by, and what it is compared with. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object


@dataclass(frozen=True, slots=True)
class ListedObject:
    key: str
    uid: str
    revision: str
    digests: Mapping[str, str] = field(default_factory=dict)
    """By version; one that could not be read is missing."""
    entries: tuple[Object, ...] = ()
    """``managedFields`` as they are."""
    managed_fields: list[Object] | None = None
    """What they should become, where some name a version that is gone or leaving."""
    obj: Object | None = None
    """The reading at the version we write at, as long as it is in hand."""
    readings: Mapping[str, Object] = field(default_factory=dict)
    """All readings, where somebody asked to keep them."""

    @property
    def expected(self) -> list[Object]:
        """Who should own what after the write."""
        return list(self.entries) if self.managed_fields is None else self.managed_fields

    def same_content(self, digests: Mapping[str, str]) -> bool:
        """Equal at every version both were read at, and at one at least."""
        shared = self.digests.keys() & digests.keys()
        return bool(shared) and all(self.digests[name] == digests[name] for name in shared)

    def with_digests_of(self, digests: Mapping[str, str]) -> ListedObject:
        return replace(self, digests=dict(digests))

    def with_managed_fields(self, entries: list[Object]) -> ListedObject:
        return replace(self, managed_fields=entries)
