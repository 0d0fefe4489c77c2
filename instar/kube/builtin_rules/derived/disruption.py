"""How many pods a PodDisruptionBudget wants to be healthy. Pure.

The disruption controller (``server/registry/controllers/disruption.py``) calls it.
"""

from __future__ import annotations

from instar.base.json_values import Object


def needs_scale(spec: Object) -> bool:
    """Whether the number depends on how many pods the controllers of the pods should have."""
    if spec.get("maxUnavailable") is not None:
        return True
    return isinstance(spec.get("minAvailable"), str)


def desired_healthy(spec: Object, expected: int) -> int:
    """Return the number of pods that must stay healthy, of ``expected`` ones."""
    unavailable, available = spec.get("maxUnavailable"), spec.get("minAvailable")
    if unavailable is not None:
        return max(expected - _number(unavailable, expected), 0)
    return 0 if available is None else _number(available, expected)


def _number(value: int | str, whole: int) -> int:
    """Return a count, or a percentage of the whole, rounded up."""
    if isinstance(value, int):
        return value
    return -(-int(value.removesuffix("%")) * whole // 100)
