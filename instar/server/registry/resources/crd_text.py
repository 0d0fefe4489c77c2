"""A stored CRD as text in two parts: nearly all of it is the spec, and nearly all writes leave
that alone.

Whether one did is told by comparing bytes, and what else it says is read without parsing a schema.
Wherever the text is not of the form everybody writes, the answer is "not known". Knows no rules.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.server.registry.stored.entry import CacheEntry

_SPEC, _STATUS = b',"spec":{', b',"status":{'
_AROUND = {"metadata", "status"}
"""Quotation marks within a text are escaped, so these bytes are members, and where keys are sorted
the first such spec and the last such status are the object's own."""


def around_equal_spec(old: CacheEntry, new: CacheEntry) -> dict[str, Any] | None:
    """The new CRD without its spec, where that is the old one's to the byte; else None."""
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
    """The CRD without its spec; None where that cannot be told from the text."""
    view = entry.view
    begin, end = view.find(_SPEC), view.rfind(_STATUS)
    return _cut(view, begin, end) if 0 < begin < end else None


def spec_text(entry: CacheEntry) -> bytes | None:
    """The spec as it is written; None where that cannot be told from the text."""
    view = entry.view
    begin, end = view.find(_SPEC), view.rfind(_STATUS)
    if not 0 < begin < end or _cut(view, begin, end) is None:
        return None
    return view[begin:end]


def _cut(view: bytes, begin: int, end: int) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = orjson.loads(view[:begin] + view[end:])
    except ValueError:  # the bytes left out were no whole spec
        return None
    return found if found.keys() >= _AROUND and "spec" not in found else None
