"""Reads and sets conditions in an object's status.

``subresources/binding.py``, ``subresources/eviction.py`` and the controllers call it; pure
functions on plain objects.
"""

from __future__ import annotations

from instar.base.json_values import Object


def set_condition(obj: Object, condition: Object, now: str) -> None:
    """Set a condition in place; ``lastTransitionTime`` stays where its status does not change."""
    status = obj.setdefault("status", {})
    conditions = status.get("conditions") or []
    old = next((one for one in conditions if one["type"] == condition["type"]), None)
    kept = old is not None and old.get("status") == condition["status"]
    since = old.get("lastTransitionTime") if old is not None and kept else None
    new = {**condition, "lastTransitionTime": since or now}
    status["conditions"] = [
        *(new if one is old else one for one in conditions),
        *([new] if old is None else []),
    ]


def is_true(obj: Object, type: str) -> bool:
    """Return whether the condition of this type has the status True."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == type and one.get("status") == "True" for one in conditions)
