"""The seam of admission: one write as its plugins see it. The plugins are in ``admission/``.

It stands in every write path at the same two places: ``admit`` when the object is prepared and not
yet checked, ``validate`` when it is checked and not yet stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import Protocol

from instar.access.attributes import Attributes
from instar.plain import Object
from instar.registry.resources.resource import Target
from instar.registry.resources.serving import Serving

_MOST_KEPT = 10_000
"""Resources whose plugins are remembered; CRDs come and go."""


class Verb(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(slots=True)
class Operation:
    """What is about to happen to one object."""

    verb: Verb
    asked: Attributes
    target: Target
    obj: Object | None
    """At the request's version; ``admit`` may change it in place. None for a delete."""
    old: Object | None = None
    subresource: str = ""
    dry_run: bool = False
    warn: Callable[[str], None] = lambda text: None
    changed: bool = False
    """Set by whoever changes ``obj``: what was prepared is prepared once more then."""


class Interest(Flag):
    """Which of its two parts a plugin has for a resource."""

    NONE = 0
    ADMIT = auto()
    VALIDATE = auto()
    BOTH = ADMIT | VALIDATE


class Admission(Protocol):
    def interest(self, serving: Serving) -> Interest:
        """Asked once for each resource: what has no part in its writes costs them nothing."""
        ...

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        """May change ``operation.obj`` in place; raises an ``ApiError`` to refuse. Whoever need
        not wait answers None: a coroutine for nothing costs more than the question."""
        ...

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        """May only refuse."""
        ...


_Concerned = tuple[Admission, ...]


class Chain:
    """Plugins one after the other; the first refusal ends it."""

    def __init__(self, plugins: Sequence[Admission] = ()) -> None:
        self._plugins = tuple(plugins)
        self._concerned: dict[tuple[str, str, bool], tuple[_Concerned, _Concerned]] = {}

    async def admit(self, operation: Operation) -> None:
        for plugin in self._of(operation)[0]:
            waiting = plugin.admit(operation)
            if waiting is not None:
                await waiting

    async def validate(self, operation: Operation) -> None:
        for plugin in self._of(operation)[1]:
            waiting = plugin.validate(operation)
            if waiting is not None:
                await waiting

    def _of(self, operation: Operation) -> tuple[_Concerned, _Concerned]:
        serving = operation.target.serving
        key = (serving.group, serving.plural, serving.namespaced)
        known = self._concerned.get(key)
        if known is None:
            if len(self._concerned) > _MOST_KEPT:
                self._concerned.clear()
            interests = [(plugin, plugin.interest(serving)) for plugin in self._plugins]
            known = self._concerned[key] = (
                tuple(plugin for plugin, part in interests if part & Interest.ADMIT),
                tuple(plugin for plugin, part in interests if part & Interest.VALIDATE),
            )
        return known
