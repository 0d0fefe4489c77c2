"""What a writer wants an object to become, how strictly that is taken, and what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.conversions import Conversions


class Written(NamedTuple):
    view: bytes
    """The object's JSON at the request's version."""
    created: bool = False


class Proposal(NamedTuple):
    """What a writer wants an object to become."""

    obj: Object
    managed: list[Object] | None = None
    """managedFields already decided (by apply); None lets the write work them out."""
    conversions: Conversions | None = None
    """What was converted on the way to the proposal."""


Propose = Callable[[Object, CacheEntry], Awaitable[Proposal]]
"""(the object at the request's version, its entry) → the new one; may raise an ``ApiError``."""


class WritePart(NamedTuple):
    """An object of another kind through which this one is read and written."""

    kind: GroupVersionKind
    show: Callable[[Object], Object]
    take: Callable[[Object, Object], None]
    """(the object, what became of its part): changes the object in place."""


class UpdateRules(NamedTuple):
    """How strictly an update treats the revision it is based on."""

    subresource: str = ""
    unconditional: bool = False
    """Last write wins when no resourceVersion is given."""
    uid_is_precondition: bool = True
    """PUT treats a foreign uid as a conflict; a patch as an illegal change."""
    part: WritePart | None = None
    """What admission sees instead of the object."""
    admitted: bool = False
    """Whether admission has seen what led to this, and is not asked again."""
