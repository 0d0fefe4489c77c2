"""What a second side does to an object that the first one took, and whether that shows a finding.

Pure: two verdicts and a place in, an effect out.
"""

from __future__ import annotations

from instar.reviewer.report import Effect, Verdict
from instar.schema.values import same_json

_WHOLE = ("", "<nil>")
"""How a complaint about the object as a whole names its place."""


def split(text: str) -> tuple[str, str]:
    field, _, rest = text.partition(": ")
    return field, rest


def effect_of(wanted: Effect, base: Verdict, other: Verdict, path: str) -> Effect | None:
    """What the second side does that the first did not.

    Reading prunes and never validates, so a loss counts even where a write would be refused.
    """
    lost = any(item.startswith(path) for item in set(other.pruned) - set(base.pruned))
    if lost and wanted is Effect.PRUNED:
        return Effect.PRUNED
    if not other.accepted:
        # Refused for another field, it shows something else than it says.
        return Effect.REFUSED if is_about(other, path) else None
    if lost:
        return Effect.PRUNED
    left, right = ({**(side.result or {}), "apiVersion": ""} for side in (base, other))
    return None if same_json(left, right) else Effect.CHANGED


def is_about(verdict: Verdict, path: str) -> bool:
    """Whether one of the complaints is about this place, something in it or something around it."""
    return not path or any(near(split(text)[0], path) for text in verdict.errors)


def near(place: str, path: str) -> bool:
    return place.startswith(path) or path.startswith(place) or place in _WHOLE


def shows(wanted: Effect, seen: Effect | None) -> bool:
    if seen is None:
        return False
    if wanted is Effect.ACCEPTED:
        return seen in (Effect.REFUSED, Effect.PRUNED)
    if wanted is Effect.CHANGED:
        return seen in (Effect.CHANGED, Effect.REFUSED)
    return seen is wanted
