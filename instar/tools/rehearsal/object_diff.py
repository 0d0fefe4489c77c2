"""Compares two readings of an object: missing and different values. Pure.

``version_probe.py``, ``rollback.py`` and ``faults.py`` call it.
"""

from __future__ import annotations

import hashlib
from difflib import unified_diff
from typing import Any

import orjson
import yaml

from instar.base.json_values import ABSENT, Object, differing
from instar.tools.redacting import last_name, redact
from instar.tools.reviewer.report import Damage

_BOOKKEEPING = ("resourceVersion", "managedFields", "selfLink")
"""Fields that the server writes by itself; they are not compared."""
_MAX_SHOWN_DIFFERENCES = 3
"""Further differences are only counted."""
_DIFF_LINES = 24


def key_of(obj: Object) -> str:
    """Return ``namespace/name``, or only the name of a cluster-scoped object."""
    metadata = obj["metadata"]
    namespace, name = metadata.get("namespace"), metadata["name"]
    return f"{namespace}/{name}" if namespace else str(name)


def content_without_version(obj: Object) -> Object:
    """Return the content of an object without its version."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _BOOKKEEPING}
    rest = {name: value for name, value in obj.items() if name not in ("apiVersion", "metadata")}
    return {"metadata": metadata, **rest}


def content_digest(obj: Object) -> bytes:
    """Return a value that is equal for readings with the same content at any version."""
    text = orjson.dumps(content_without_version(obj), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).digest()


def differences(before: Object, after: Object) -> dict[Damage, list[str]]:
    """Return the paths whose value is missing, and the paths whose value differs."""
    found: dict[Damage, list[str]] = {}
    for path, old, new in differing(
        content_without_version(before), content_without_version(after)
    ):
        damage = Damage.PRUNED if new is ABSENT else Damage.CHANGED
        found.setdefault(damage, []).append(_difference_text(path, old, new))
    return found


def losses(before: Object, after: Object) -> list[str]:
    """Return only the missing paths, for readings at two versions."""
    return differences(before, after).get(Damage.PRUNED, [])


def _difference_text(path: str, old: Any, new: Any) -> str:
    if new is ABSENT:
        return f"{path} is gone"
    if old is ABSENT:
        return f"{path} is {_short(path, new)} now, and was not there before"
    return f"{path} is {_short(path, new)} instead of {_short(path, old)}"


def summary(texts: list[str]) -> str:
    more = len(texts) - _MAX_SHOWN_DIFFERENCES
    return "; ".join(texts[:_MAX_SHOWN_DIFFERENCES]) + (f" and {more} more" if more > 0 else "")


def diff(before: Object, after: Object) -> tuple[str, ...]:
    """Return the differing lines with context; secrets are redacted."""
    old, new = (
        yaml.safe_dump(
            redact(content_without_version(obj)), sort_keys=True, allow_unicode=True, width=100
        )
        for obj in (before, after)
    )
    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    shown = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    if len(shown) > _DIFF_LINES:
        shown = [*shown[:_DIFF_LINES], f"… {len(shown) - _DIFF_LINES} more lines"]
    return tuple(shown)


def _short(path: str, value: Any) -> str:
    name = last_name(path)
    text = orjson.dumps(redact({name: value})[name]).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"
