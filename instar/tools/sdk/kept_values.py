"""Keeps in an annotation the values that a version has no field for, while an object is at that
version.

``ruleset.py`` and the rule ``keep`` use it. A kept value is stored with a digest of the value that
the other version shows instead. It is restored only while that value is unchanged, so an edit made
at the other version wins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.paths import MISSING

PREFIX = "conversion.instar/kept-"


def canonical(value: Any) -> bytes:
    """Return equal bytes exactly for equal JSON values; 1, 1.0 and true all differ."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise ConversionError(f"a value that is not JSON: {error}") from None


def digest(value: Any) -> str:
    """Return a short digest of a JSON value, equal for equal values."""
    return hashlib.sha256(canonical(value)).hexdigest()[:16]


class KeptValues:
    """Kept values of one conversion: stored when leaving a version, restored when entering one."""

    __slots__ = ("_kept", "_leaving", "waiting")

    def __init__(self, obj: dict[str, Any], leaving: str, entering: str) -> None:
        """``leaving`` and ``entering`` are the annotations of the two versions."""
        self._leaving = leaving
        self._kept: dict[str, Any] = {}
        self.waiting: dict[str, Any] = {}
        metadata = obj.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if annotations and isinstance(annotations, dict):
            # What an object carries for the version it is leaving is out of date by definition.
            annotations.pop(leaving, None)
            text = annotations.pop(entering, None)
            if text is not None:
                self.waiting = _read(text)

    def keep(self, place: str, values: Mapping[str, Any], seen: str) -> None:
        self._kept[place] = {"values": dict(values), "seen": seen}

    def give_back(self, place: str, names: Sequence[str], seen: str) -> list[Any] | None:
        """Return the values kept for ``place``, or ``None`` if there are none or they are stale."""
        entry = self.waiting.get(place)
        if not isinstance(entry, dict) or entry.get("seen") != seen:
            return None
        values = entry.get("values")
        if not isinstance(values, dict):
            return None
        return [values.get(name, MISSING) for name in names]

    def keep_order(self, place: str, order: list[str]) -> None:
        self._kept[place] = {"order": order}

    def order(self, place: str) -> list[str] | None:
        """Return the kept order of a list. It cannot be stale: it only reorders existing items."""
        entry = self.waiting.get(place)
        order = entry.get("order") if isinstance(entry, dict) else None
        return order if isinstance(order, list) else None

    def keep_container(self, place: str, *, was_there: bool) -> None:
        """Record that a container was empty or absent."""
        self._kept[f"{place} ({'empty' if was_there else 'absent'})"] = {}

    def was_empty(self, place: str) -> bool:
        return f"{place} (empty)" in self.waiting

    def was_absent(self, place: str) -> bool:
        return f"{place} (absent)" in self.waiting

    def close(self, obj: dict[str, Any]) -> None:
        """Write the annotation; remove an empty annotations map that was not there before."""
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            return
        if self._kept:
            metadata.setdefault("annotations", {})[self._leaving] = canonical(self._kept).decode()
        elif metadata.get("annotations") == {}:
            del metadata["annotations"]


def _read(text: Any) -> dict[str, Any]:
    try:
        waiting = orjson.loads(text)
    except (orjson.JSONDecodeError, TypeError):
        return {}
    return waiting if isinstance(waiting, dict) else {}
