"""Values of the write path: the proposed object, the rules of an update, and the result.

``patch.py``, ``apply.py``, ``subresources/scaling.py`` and the controllers make proposals for
``write.update``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.conversions import WriteConversions


class WriteResult(NamedTuple):
    """The result of a write."""

    view: bytes
    """The object's JSON at the request's version."""
    created: bool = False


class Proposal(NamedTuple):
    """The object that a writer wants to store."""

    obj: Object
    managed: list[Object] | None = None
    """managedFields that an apply has decided; None if the update computes them."""
    conversions: WriteConversions | None = None
    """Conversions that were made for the proposal."""
    given: Callable[[], Any] | None = None
    """Returns the result of a patch before it was decoded, for error messages that quote it."""


Propose = Callable[[Object, CacheEntry], Awaitable[Proposal]]
"""(the object at the request's version, its entry) → the proposed object; may raise an
``ApiError``."""


class WritePart(NamedTuple):
    """An object of another kind (a Scale) through which this one is read and written."""

    kind: GroupVersionKind
    show: Callable[[Object], Object]
    take: Callable[[Object, Object], None]
    """(the object, the changed part): changes the object in place."""


class UpdateRules(NamedTuple):
    """How an update treats the object it is based on."""

    subresource: str = ""
    unconditional: bool = False
    """Whether the last write wins where the request has no resourceVersion."""
    uid_is_precondition: bool = True
    """Whether another uid is a conflict, as in a PUT; a patch treats it as an invalid change."""
    part: WritePart | None = None
    """What admission sees instead of the object."""
    admitted: bool = False
    """Whether admission has run already, for the request that led to this update."""
