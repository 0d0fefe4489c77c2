"""One object as the lister read it: its resourceVersion, which guards the write, and the digests
that the result is compared with. Pure.

Made by ``object_pages.py``, used by ``rewrite_checks/``, the writer, the progress file, the undo
journal and the verification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.migrator.content_diff import digest


@dataclass(frozen=True, slots=True)
class ListedObject:
    """What a migration keeps of an object in a list."""

    key: str
    uid: str
    revision: str
    digests: Mapping[str, str] = field(default_factory=dict)
    """By version; a version that could not be read is missing."""
    entries: tuple[Object, ...] = ()
    """``managedFields`` as they are."""
    managed_fields: list[Object] | None = None
    """What they should become, where some name a version that is gone or leaving."""
    obj: Object | None = None
    """The reading at the version that is written."""
    readings: Mapping[str, Object] = field(default_factory=dict)
    """The object at every version that could be read, where the lister was told to keep them."""

    @property
    def expected(self) -> list[Object]:
        """Return the ``managedFields`` that the object should have after the write."""
        return list(self.entries) if self.managed_fields is None else self.managed_fields

    def same_content(self, digests: Mapping[str, str]) -> bool:
        """Return whether the contents are equal at every version that both were read at, and at
        least at one version.
        """
        shared = self.digests.keys() & digests.keys()
        return bool(shared) and all(self.digests[name] == digests[name] for name in shared)

    def has_content(self, version: str, obj: Object) -> bool:
        """Return whether the reading at a version is equal to ``obj``."""
        return self.digests.get(version) == digest(obj)

    def with_digests_of(self, digests: Mapping[str, str]) -> ListedObject:
        return replace(self, digests=dict(digests))

    def with_managed_fields(self, entries: list[Object]) -> ListedObject:
        return replace(self, managed_fields=entries)
