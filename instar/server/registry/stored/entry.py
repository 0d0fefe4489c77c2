"""Cache entry: one stored object as the watch cache holds it, with bytes that are ready to be sent.

``backend.py`` makes entries, ``codec.py`` reads them. ``view`` is the stored JSON with
``metadata.resourceVersion`` spliced in, so that a read at the stored version decodes nothing.
``token`` names the schema that the bytes are known to fit. Labels are parsed when a selector needs
them. ``InMemoryEntry`` holds its bytes; ``lazy_entry.py`` and ``shared_entry.py`` read them from
disk or shared memory.
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
    """The stored bytes are not a Kubernetes object: foreign or damaged."""


class UndecryptableEntry(Internal, UnreadableEntry):
    """The stored bytes are encrypted, and no configured key decrypts them."""

    retryable = False


class CacheEntry:
    """A stored object, wherever its bytes are."""

    __slots__ = ("revision", "suffix", "token")
    revision: int
    suffix: str
    token: object
    """The ``VersionServing`` by which the bytes are known to be normal (``codec.py``)."""
    raw: bytes | None
    """The bytes as they were read, until ``view`` is made of them."""
    ready: bytes
    """``view`` if it is made already; lists read it directly to save a call."""
    normal: bytes | None
    """The view by today's schema, if it is in memory and differs from the stored bytes."""

    @property
    def size(self) -> int:
        """The approximate size of the object in bytes."""
        raise NotImplementedError

    @property
    def view_size(self) -> int:
        """The length of ``view``, for bytes that this server wrote."""
        return self.size

    @property
    def seal(self) -> Seal | None:
        """The encryption key of the stored value; None if it is not encrypted."""
        raise NotImplementedError

    @property
    def api_version(self) -> str:
        raise NotImplementedError

    @property
    def labels(self) -> dict[str, str]:
        raise NotImplementedError

    def load(self) -> InMemoryEntry:
        """Return the entry with its bytes in memory: itself, or a copy for the caller."""
        raise NotImplementedError

    def keep_normal(self, loaded: InMemoryEntry, token: object) -> None:
        """Note that ``loaded`` is this object by the schema ``token``. An entry that keeps no bytes
        keeps no normal view either: it notes only whether the stored bytes are normal."""
        if loaded.normal is None and (loaded is self or len(loaded.view) == self.view_size):
            self.token = token

    def replaced(self) -> None:
        """Called when a write has replaced this entry, which watchers of the past may still
        read."""

    @property
    def view(self) -> bytes:
        return self.load().view

    def json(self) -> bytes:
        """Return the object's bytes, with or without a revision, to search in them."""
        loaded = self.load()
        raw = loaded.raw
        return raw if raw is not None else loaded.ready

    def stored(self) -> bytes:
        """Return the bytes as they are in the store, without the newline at the end."""
        return self.load().stored()

    def decode(self) -> dict[str, Any]:
        """Return a fresh dict, resourceVersion included."""
        return self.load().decode()

    def content(self) -> dict[str, Any]:
        """Return a fresh dict of the stored bytes, without resourceVersion."""
        return self.load().content()


class InMemoryEntry(CacheEntry):
    """Entry that holds its bytes. Readers do not change it; underscored fields are filled in on
    demand."""

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
        """Offset of the resourceVersion in the bytes, or where it belongs; -1 until it is
        needed."""
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

    def load(self) -> InMemoryEntry:
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
        """The labels if they were parsed already, else None."""
        return self._labels

    def know(self, *, api_version: str, labels: dict[str, str] | None) -> None:
        """Take over what the writer knows, so that the bytes need not be parsed for it."""
        self._api_version = api_version
        self._labels = share_labels(labels)

    def _read_api_version(self) -> str:
        raw = self.raw
        data = raw if raw is not None else self.ready
        if (opening := opening_of(data)) is not None:
            return intern(opening.decode(errors="replace"))
        return str(self._parsed(data).get("apiVersion", ""))

    def make_ready(self) -> None:
        """Make ``ready`` of ``raw`` and drop ``raw``."""
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
        """Rewrite foreign bytes (no uid, unsorted keys) in the form that this server writes."""
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
        """Return where the resourceVersion belongs; -1 where the bytes must be rewritten, because
        they contain one already or have no uid."""
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
            return UndecryptableEntry(self.seal.problem)
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
