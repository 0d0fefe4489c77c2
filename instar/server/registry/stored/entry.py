"""One stored object as the cache holds it: its bytes at the stored version, ready to be sent.

``view`` is the stored JSON with ``metadata.resourceVersion`` spliced in, so a read at the stored
version costs no decoding at all. Whether those bytes still fit the CRD's schema of today is noted
in ``token`` by ``codec.py``. Labels are read only when a selector asks. An entry holds its bytes
(``InMemoryEntry``) or knows where they are (``lazy_entry.py``); readers need not know which.
"""

from __future__ import annotations

from sys import intern
from typing import Any

import orjson

from instar.base.errors import Internal, Unclassified
from instar.server.registry.stored.object_bytes import (
    NO_LABELS,
    certain_revision_offset,
    has_revision,
    inserted_at,
    labels_of,
    labels_text,
    offset_by_uid,
    opening_of,
    revision_member,
    revision_offset,
    share_labels,
)
from instar.wire.storage.store import Record, Seal


class UnreadableEntry(Unclassified):
    """What lies in the store is no object: foreign or damaged bytes."""


class Unopened(Internal, UnreadableEntry):
    """What lies in the store is sealed, and no key of ours opens it."""

    retryable = False


class CacheEntry:
    """What may be asked of a stored object, wherever its bytes are."""

    __slots__ = ("revision", "suffix", "token")
    revision: int
    suffix: str
    token: object
    """The schema these bytes are known to be normal for (see ``codec.py``)."""
    raw: bytes | None
    """The bytes as they were read, as long as nobody asked for ``view``."""
    ready: bytes
    """``view``, where it is at hand: lists look here to spare a call."""
    normal: bytes | None
    """The view by today's schema, where it is at hand and differs from the stored bytes."""

    @property
    def size(self) -> int:
        """About how many bytes the object has."""
        raise NotImplementedError

    @property
    def view_size(self) -> int:
        """Bytes of ``view``, where the stored bytes are as this server writes them."""
        return self.size

    @property
    def seal(self) -> Seal | None:
        """The key it lies under in the store; None where it lies there as it is."""
        raise NotImplementedError

    @property
    def api_version(self) -> str:
        raise NotImplementedError

    @property
    def labels(self) -> dict[str, str]:
        raise NotImplementedError

    def near(self) -> InMemoryEntry:
        """The entry with its bytes at hand: itself, or one for this reader alone."""
        raise NotImplementedError

    def keep_normal(self, near: InMemoryEntry, token: object) -> None:
        """``near`` shows this by the schema ``token``. Who keeps no bytes keeps no view, either:
        where those that lie there are not normal, each reader works."""
        if near.normal is None and (near is self or len(near.view) == self.view_size):
            self.token = token

    def replaced(self) -> None:
        """Another has taken its place; this one may stay for those who read what was."""

    @property
    def view(self) -> bytes:
        return self.near().view

    def json(self) -> bytes:
        """The object in whichever form is at hand, to be searched."""
        near = self.near()
        raw = near.raw
        return raw if raw is not None else near.ready

    def stored(self) -> bytes:
        """The bytes as they lie in the store, but for the newline at their end."""
        return self.near().stored()

    def decode(self) -> dict[str, Any]:
        """A fresh dict, resourceVersion included."""
        return self.near().decode()

    def content(self) -> dict[str, Any]:
        """A fresh dict of what lies in the store, without a resourceVersion."""
        return self.near().content()


class InMemoryEntry(CacheEntry):
    """Immutable to its readers; fields starting with an underscore are filled in on demand."""

    __slots__ = (
        "_api_version",
        "_labels",
        "at",
        "normal",
        "raw",
        "ready",
        "seal",
    )

    def __init__(self, raw: bytes, revision: int, suffix: str, at: int = -1) -> None:
        self.raw: bytes | None = raw
        self.revision = revision
        self.suffix = suffix
        self.seal: Seal | None = None
        self.at = at
        """Where the resourceVersion goes, or is; -1 until it is needed."""
        self.token: object = None
        self.normal: bytes | None = None
        self.ready: bytes = b""
        self._labels: dict[str, str] | None = None
        self._api_version: str | None = None

    @classmethod
    def of_view(cls, view: bytes, revision: int, suffix: str) -> InMemoryEntry:
        held = cls(b"", revision, suffix)
        held.raw, held.ready = None, view
        return held

    def near(self) -> InMemoryEntry:
        return self

    @property
    def size(self) -> int:
        raw = self.raw  # read once: a thread may make the view meanwhile
        return len(raw) if raw is not None else len(self.ready)

    @property
    def view(self) -> bytes:
        self.make_ready()
        return self.ready

    def stored(self) -> bytes:
        raw = self.raw
        if raw is not None:
            return raw.removesuffix(b"\n")
        if self.at < 0:
            self.at = inserted_at(self.ready, self.revision)
        length = len(revision_member(self.revision))
        return self.ready[: self.at] + self.ready[self.at + length :]

    def decode(self) -> dict[str, Any]:
        return self._parsed(self.view)

    def content(self) -> dict[str, Any]:
        raw = self.raw
        if raw is None:
            return self._parsed(self.stored())
        obj = self._parsed(raw)
        if self.at < 0:
            self.at = offset_by_uid(raw, obj)
        return obj

    @property
    def api_version(self) -> str:
        if self._api_version is None:
            self._api_version = self._read_api_version()
        return self._api_version

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            raw = self.raw
            text = labels_text(raw if raw is not None else self.ready)
            if text is not None:
                self._labels = labels_of(text) if text else NO_LABELS
                return self._labels
            try:
                metadata = self.decode().get("metadata")
            except UnreadableEntry:
                metadata = None
            found = metadata.get("labels") if isinstance(metadata, dict) else None
            self._labels = share_labels(found if isinstance(found, dict) else None)
        return self._labels

    @property
    def known_labels(self) -> dict[str, str] | None:
        """None where nobody has asked for them yet."""
        return self._labels

    def know(self, *, api_version: str, labels: dict[str, str] | None) -> None:
        """Facts the writer already has, so nobody parses the bytes for them."""
        self._api_version = api_version
        self._labels = share_labels(labels)

    def _read_api_version(self) -> str:
        raw = self.raw
        data = raw if raw is not None else self.ready
        if (opening := opening_of(data)) is not None:
            return intern(opening.decode(errors="replace"))
        return str(self._parsed(data).get("apiVersion", ""))

    def make_ready(self) -> None:
        """Make ``ready``, which replaces the bytes it is made of."""
        raw, at = self.raw, self.at
        if raw is None:
            return
        if at < 0:
            raw = raw.removesuffix(b"\n")
            at = self._place_for_revision(raw)
        if at >= 0:
            self.at = at
            end = len(raw) - raw.endswith(b"\n")
            self.ready = b"".join((raw[:at], revision_member(self.revision), raw[at:end]))
        else:
            self._make_ready_slowly(raw)
        self.raw = None

    def _make_ready_slowly(self, raw: bytes) -> None:
        """Foreign bytes (no uid, unsorted keys): write them anew in the form everyone expects."""
        obj = self._parsed(raw)
        metadata = obj.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            raise self._unreadable("its metadata is no object")
        metadata.pop("resourceVersion", None)
        metadata["uid"] = str(metadata.get("uid") or "")
        rewritten = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
        at = revision_offset(rewritten)
        self.at = at
        self.ready = rewritten[:at] + revision_member(self.revision) + rewritten[at:]
        self._api_version = None

    def _place_for_revision(self, raw: bytes) -> int:
        """-1 where the bytes must be written anew: they bring a revision along, or no uid."""
        if has_revision(raw):
            return -1
        try:
            return revision_offset(raw)
        except ValueError as error:
            raise self._unreadable(str(error)) from error

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            obj = orjson.loads(data)
        except ValueError as error:
            raise self._unreadable(str(error)) from error
        if not isinstance(obj, dict):
            raise self._unreadable("it is no JSON object")
        return obj

    def _unreadable(self, why: str) -> UnreadableEntry:
        if self.seal is not None and self.seal.problem:
            return Unopened(self.seal.problem)
        return UnreadableEntry(f"the stored value of {self.suffix} cannot be read: {why}")


def ingest(record: Record, suffix: str) -> InMemoryEntry:
    """Return the entry of a record that this process did not write itself.

    Where the place of the resourceVersion is certain, the view is made at once: it takes the memory
    of the bytes just read, while a view made later would leave a gap too small for the next one.
    """
    _, raw, revision, seal = record
    at = certain_revision_offset(raw, suffix)
    entry = InMemoryEntry(raw, revision, suffix, at)
    if seal is not None:
        entry.seal = seal
    if at >= 0:
        entry.make_ready()
    return entry
