"""How a deletion is asked for, and which wishes contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import inf

from instar.base import errors
from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, invalid, not_supported
from instar.base.json_values import Object
from instar.kube.access.attributes import OURSELVES, Attributes
from instar.kube.admission.admission_request import options_document
from instar.server.registry.resources.admission import Verb

_POLICIES = ("Foreground", "Background", "Orphan", "nil")
UNREADABLE = "ignoreStoreReadErrorWithClusterBreakingPotential"
"""Upstream's name for deleting what cannot be read."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    unreadable: bool = False
    """Only an object that cannot be read is meant, and it goes at once, finalizers or not."""
    grace: int | None = None
    """Seconds an object of a kind that knows of grace is left; None for its own wish."""
    admitted: bool = False
    """Whether admission has seen what led to this, and is not asked again."""
    answered: bool = True
    """Whether somebody wants to see an object that lingers; clean-up does not."""
    asked: Attributes = OURSELVES
    warn: Callable[[str], None] = field(default=lambda text: None)
    annotate: Callable[[str, str], None] = field(default=lambda key, value: None)
    seconds_left: Callable[[], float] = field(default=lambda: inf)

    def document(self, verb: Verb) -> Object:
        given = {"uid": self.uid, "resourceVersion": self.resource_version}
        return options_document(
            "DeleteOptions",
            gracePeriodSeconds=self.grace,
            preconditions={name: value for name, value in given.items() if value is not None},
            orphanDependents=self.orphan_dependents,
            propagationPolicy=self.policy,
            dryRun=["All"] if self.dry_run else None,
        )


def check_delete_options(options: DeleteOptions) -> None:
    found: list[FieldError] = []
    if options.policy is not None and options.orphan_dependents is not None:
        found.append(
            invalid(
                "propagationPolicy",
                options.policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    elif options.policy is not None and options.policy not in _POLICIES[:3]:
        found.append(not_supported("propagationPolicy", options.policy, _POLICIES))
    if options.unreadable:
        found += _unsafe_option_errors(options)
    if found:
        raise errors.invalid_options("DeleteOptions", found)


def _unsafe_option_errors(options: DeleteOptions) -> list[FieldError]:
    """The unsafe delete does one thing and takes no other wishes."""
    others = {
        "dryRun": options.dry_run,
        "propagationPolicy": options.policy is not None,
        "orphanDependents": options.orphan_dependents is not None,
        "preconditions": options.uid is not None or options.resource_version is not None,
    }
    return [
        invalid(UNREADABLE, True, f"cannot be set together with .{name}")
        for name, given in others.items()
        if given
    ]
