"""Computes the JSON patch between two values: objects member by member, lists as a whole.

Called by the SDK's admission handlers (``tools/sdk/admission_reviews.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object, same_json


def patch_between(before: Any, after: Any) -> list[Object]:
    """Return RFC 6902 operations; empty if nothing differs."""
    return list(_operations(before, after, ""))


def _operations(before: Any, after: Any, path: str) -> Iterator[Object]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _members(before, after, path)
    elif not same_json(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _members(before: Object, after: Object, path: str) -> Iterator[Object]:
    for name in before.keys() - after.keys():
        yield {"op": "remove", "path": f"{path}/{_step(name)}"}
    for name, value in after.items():
        place = f"{path}/{_step(name)}"
        if name in before:
            yield from _operations(before[name], value, place)
        else:
            yield {"op": "add", "path": place, "value": value}


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
