"""DeleteOptions of a request: their fields and the combinations that are refused.

``server/rest/options.py`` and the controllers make them, ``delete.py`` checks and follows them.
"""

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
"""Upstream's name of the option that deletes an unreadable object."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How an object is to be deleted."""

    dry_run: bool = False
    policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    unreadable: bool = False
    """Delete only an object that cannot be read, at once and with its finalizers."""
    grace: int | None = None
    """Grace period in seconds, for kinds that have one; None for the object's own."""
    admitted: bool = False
    """Whether admission has run already, for the request that led to this deletion."""
    answered: bool = True
    """Whether the response shows a terminating object; the server's own clean-up does not need
    it."""
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
    """Refuse options that contradict each other."""
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
    """Return the errors of options that cannot be combined with the unsafe delete."""
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
