"""The layout of stored objects' JSON: finds labels, apiVersion and the place of resourceVersion in
the bytes without parsing them.

The cache entries (``entry.py``, ``lazy_entry.py``) and ``prepared_object.py`` call it. The module
relies on the sorted keys that this server writes, and reports where other bytes have to be parsed
instead.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson

from instar.kube.api.encoding.json_text import encode_sorted

_API_VERSION = b'{"apiVersion":"'
_UID = b'"uid":"'
_NAME = b'"name":"'
_BEHIND_LABELS = tuple(
    b'},"%b' % name
    for name in b"creationT deletion finalizers generat kind labels manag metadata name".split()
)
"""What follows labels or annotations inside metadata, or an object inside an object."""
_NAME_LENGTH = len('"name":"",')
_NAMESPACE_LENGTH = len('"name":"","namespace":"",') - len("/")
_KIND = b'","kind":"'
_METADATA = b'","metadata":{'
_LABELS = b'"labels":{'
_EARLY = 400
"""The kind begins before this offset, however long the group's name is."""
_RESOURCE_VERSION = b'"resourceVersion":"'
NO_LABELS: dict[str, str] = {}
_MOST_SHARED = 16
_LONGEST_SHARED = 1024


@lru_cache(maxsize=4096)
def _shared(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(items)


@lru_cache(maxsize=4096)
def labels_of(text: bytes) -> dict[str, str]:
    """Parse a text that ``labels_text`` found. Raises ``ValueError`` if it is not JSON."""
    found: dict[str, str] = orjson.loads(text)
    return found


def share_labels(labels: dict[str, str] | None) -> dict[str, str]:
    """Return one dict for all objects with the same labels: it is a fifth of a small object."""
    if not labels:
        return NO_LABELS
    if len(labels) > _MOST_SHARED:
        return labels
    try:
        return _shared(tuple(labels.items()))
    except TypeError:  # foreign bytes: a label that is no string
        return labels


def labels_text(data: bytes) -> bytes | None:
    """Return the JSON of an object's labels, empty if it has none; None where the object has to be
    parsed because this server did not write it.

    Sorted metadata begins right after the kind and ends with the uid; nothing else in it has a
    object of that name. A brace in a label would cut the text short.
    """
    kind = data.find(_KIND)
    start = data.find(b'"', kind + len(_KIND)) if 0 < kind < _EARLY else -1
    if start < 0 or not data.startswith(_METADATA, start):
        return None
    at = data.find(_LABELS, start)
    if at < 0:
        return b""
    uid = data.find(_UID, start)
    if not at < uid or data.find(_LABELS, at + 1, uid) >= 0:
        return None
    text = data[at + len(_LABELS) - 1 : data.find(b"}", at) + 1]
    if len(text) > _LONGEST_SHARED:
        return None
    try:
        return text if labels_of(text) else b""
    except ValueError:
        return None


def opening_of(data: bytes) -> bytes | None:
    """Return the apiVersion of an object that this server wrote; None where it is not first."""
    if not data.startswith(_API_VERSION):
        return None
    return data[len(_API_VERSION) : data.find(b'"', len(_API_VERSION))]


def revision_offset(raw: bytes) -> int:
    """Return where ``"resourceVersion":"…",`` belongs: before ``uid``, the last key of sorted
    metadata.

    Owner references also end in a uid, so each candidate is tried. -1 when there is none.
    """
    at = raw.find(_UID)
    while at >= 0:
        probe = orjson.loads(raw[:at] + revision_member(0) + raw[at:])
        metadata = probe.get("metadata") if isinstance(probe, dict) else None
        if isinstance(metadata, dict) and metadata.get("resourceVersion") == "0":
            return at
        at = raw.find(_UID, at + 1)
    return -1


def inserted_at(view: bytes, revision: int) -> int:
    """Return where the resourceVersion of a view is. An object embedded in it may have the same."""
    member = revision_member(revision)
    marker = member + _UID
    at = view.find(marker)
    if view.find(marker, at + 1) < 0:
        return at
    while "resourceVersion" in orjson.loads(view[:at] + view[at + len(member) :])["metadata"]:
        at = view.find(marker, at + 1)
    return at


def offset_by_uid(raw: bytes, obj: dict[str, Any]) -> int:
    """Like ``revision_offset`` for bytes of a parsed object: a search instead of parsing.
    -1 where the place is not certain."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "resourceVersion" in metadata:
        return -1
    marker = f'"uid":"{metadata.get("uid", "")}"}}'.encode()
    at = raw.find(marker)
    return at if at >= 0 and raw.find(marker, at + 1) < 0 else -1


def revision_member(revision: int) -> bytes:
    return b'"resourceVersion":"%d",' % revision


def certain_revision_offset(raw: bytes, suffix: str) -> int:
    """Return where the resourceVersion belongs in an object of that key, without parsing it; -1
    where that is not certain.

    It is before the only uid, if that follows the first name: a label may be called uid, too, and
    an owner reference has both.
    """
    at = raw.find(_UID)
    name = at - len(suffix) - (_NAMESPACE_LENGTH if "/" in suffix else _NAME_LENGTH)
    plain = (
        name > 0
        and raw.find(_NAME, 0, name + len(_NAME)) == name
        and not raw.startswith(_BEHIND_LABELS, raw.find(b"}", at))
        and raw.find(_UID, at + 1) < 0
        and _RESOURCE_VERSION not in raw
    )
    return at if plain else -1


def has_revision(raw: bytes) -> bool:
    """Return whether the bytes may contain a resourceVersion already."""
    return _RESOURCE_VERSION in raw


def spliced(view: bytes, stored: bytes, wanted: bytes, api_version: str) -> bytes:
    """Return an object's JSON at a version that differs in ``apiVersion`` alone. ``stored`` and
    ``wanted`` are what objects of the two versions begin with."""
    if view.startswith(stored):
        return wanted + view[len(stored) :]
    return encode_sorted({**orjson.loads(view), "apiVersion": api_version})
