"""Conditions of a terminating namespace: what delays its deletion, with kube-controller-manager's
messages.

Pure functions; ``namespaces.py`` collects what remains and stores the conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object

_CONTENT_FAILURE = "NamespaceDeletionContentFailure"
_CONTENT, _FINALIZERS = "NamespaceContentRemaining", "NamespaceFinalizersRemaining"
_GOOD_CONDITIONS = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    _CONTENT_FAILURE: (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    _CONTENT: ("ContentRemoved", "All content successfully removed"),
    _FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Condition type → reason and message when nothing is wrong, in the order of the status."""


@dataclass(frozen=True)
class Remains:
    """What is left in a namespace after an attempt to empty it."""

    objects: Counter[str] = field(default_factory=Counter)
    """Objects by ``resource.group``."""
    finalizers: Counter[str] = field(default_factory=Counter)
    """Objects by finalizer."""
    failures: Sequence[str] = ()
    """Why deletions were refused."""


def with_conditions(status: Object, remains: Remains, now: str) -> Object:
    """Return the status with the five conditions; equal to ``status`` if nothing has changed."""
    found = {one["type"]: one for one in status.get("conditions") or () if "type" in one}
    wrong = _wrong(remains)
    for kind, well in _GOOD_CONDITIONS.items():
        reason, message = wrong.get(kind, well)
        state = "True" if kind in wrong else "False"
        old = found.get(kind) or {}
        since = old.get("lastTransitionTime") if old.get("status") == state else now
        found[kind] = {
            "type": kind,
            "status": state,
            "lastTransitionTime": since or now,
            "reason": reason,
            "message": message,
        }
    return {**status, "conditions": list(found.values())}


def _wrong(remains: Remains) -> dict[str, tuple[str, str]]:
    wrong: dict[str, tuple[str, str]] = {}
    if remains.failures:
        failures = ", ".join(sorted(remains.failures))
        text = f"Failed to delete all resource types, {len(remains.failures)} remaining: {failures}"
        wrong[_CONTENT_FAILURE] = "ContentDeletionFailed", text
    if remains.objects:
        counts = _listed(remains.objects, "{} has {} resource instances")
        wrong[_CONTENT] = "SomeResourcesRemain", f"Some resources are remaining: {counts}"
    if remains.finalizers:
        counts = _listed(remains.finalizers, "{} in {} resource instances")
        text = f"Some content in the namespace has finalizers remaining: {counts}"
        wrong[_FINALIZERS] = "SomeFinalizersRemain", text
    return wrong


def _listed(counts: Counter[str], form: str) -> str:
    return ", ".join(sorted(form.format(name, count) for name, count in counts.items()))
