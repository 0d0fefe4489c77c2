"""Compares what the old and the new CRD do to an object, and tells whether that proves a
finding. Pure.

``search.py`` calls it with the two verdicts.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, FieldErrorCode
from instar.base.json_values import same_json
from instar.tools.reviewer.report import Effect, ObjectVerdict


def error_paths(verdict: ObjectVerdict) -> list[str]:
    """Return the path of each error; empty for an error of the whole object."""
    return [
        error.path.removeprefix(".") if isinstance(error, FieldError) else ""
        for error in verdict.errors
        if not isinstance(error, FieldError) or error.code is not FieldErrorCode.RULES_SKIPPED
    ]


def effect_of(
    wanted: Effect, base: ObjectVerdict, other: ObjectVerdict, path: str
) -> Effect | None:
    """Return the effect that the second CRD has and the first has not.

    Reading prunes and never validates, so a loss counts even where a write would be refused.
    """
    lost = any(item.startswith(path) for item in set(other.pruned) - set(base.pruned))
    if lost and wanted is Effect.PRUNED:
        return Effect.PRUNED
    if not other.accepted:
        # Refused for another field, so the object does not prove this finding.
        return Effect.REFUSED if is_about(other, path) else None
    if lost:
        return Effect.PRUNED
    left, right = ({**(side.result or {}), "apiVersion": ""} for side in (base, other))
    return None if same_json(left, right) else Effect.CHANGED


def is_about(verdict: ObjectVerdict, path: str) -> bool:
    """Return whether one of the errors is at this path, below it or above it."""
    return not path or any(paths_overlap(place, path) for place in error_paths(verdict))


def paths_overlap(place: str, path: str) -> bool:
    """Return whether two paths are equal or one contains the other."""
    return place.startswith(path) or path.startswith(place)


def proves(wanted: Effect, seen: Effect | None) -> bool:
    """Return whether the two verdicts prove the effect."""
    if seen is None:
        return False
    if wanted is Effect.ACCEPTED:
        return seen in (Effect.REFUSED, Effect.PRUNED)
    if wanted is Effect.CHANGED:
        return seen in (Effect.CHANGED, Effect.REFUSED)
    return seen is wanted
