"""Splits a stored CRD's JSON into its spec and the rest without parsing the spec.

``catalog.py`` and ``stored_schemas.py`` call it: nearly all writes of a CRD leave its spec, which
is nearly all of its bytes, unchanged. The functions return None where the bytes are not in the form
that this server writes.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.server.registry.stored.entry import CacheEntry

_SPEC, _STATUS = b',"spec":{', b',"status":{'
_MEMBERS_BESIDE_SPEC = {"metadata", "status"}
"""Quotes inside strings are escaped, so that these bytes are object members; with sorted keys the
first spec and the last status are the CRD's own."""


def around_equal_spec(old: CacheEntry, new: CacheEntry) -> dict[str, Any] | None:
    """Return the new CRD without its spec if that equals the old one byte by byte; else None."""
    before, after = old.view, new.view
    begin, end = after.find(_SPEC), after.rfind(_STATUS)
    if not 0 < begin < end:
        return None
    first = before.find(_SPEC)
    if before[first : first + end - begin + len(_STATUS)] != after[begin : end + len(_STATUS)]:
        return None
    if before.rfind(_STATUS) != first + end - begin:
        return None
    return _cut(after, begin, end)


def without_spec(entry: CacheEntry) -> dict[str, Any] | None:
    """Return the CRD without its spec; None if the bytes cannot be split."""
    view = entry.view
    begin, end = view.find(_SPEC), view.rfind(_STATUS)
    return _cut(view, begin, end) if 0 < begin < end else None


def spec_text(entry: CacheEntry) -> bytes | None:
    """Return the JSON of the spec; None if the bytes cannot be split."""
    view = entry.view
    begin, end = view.find(_SPEC), view.rfind(_STATUS)
    if not 0 < begin < end or _cut(view, begin, end) is None:
        return None
    return view[begin:end]


def _cut(view: bytes, begin: int, end: int) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = orjson.loads(view[:begin] + view[end:])
    except ValueError:  # the bytes left out were not a whole spec
        return None
    return found if found.keys() >= _MEMBERS_BESIDE_SPEC and "spec" not in found else None
