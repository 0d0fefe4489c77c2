"""The seam of admission: one write as its plugins see it. The plugins are in ``admission/``.

It stands in every write path at the same two places: ``admit`` when the object is what the client
wants and not yet prepared and checked, ``validate`` when it is checked and not yet stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from enum import Flag, StrEnum, auto
from math import inf
from typing import Any, Protocol, runtime_checkable

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.resources.resource import Target
from instar.server.registry.resources.serving import Serving

_MOST_KEPT = 10_000
"""Resources whose plugins are remembered; CRDs come and go."""


class Verb(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class RequestOptions(Protocol):
    """How a write was asked for."""

    def document(self, verb: Verb) -> Object:
        """As an object: CreateOptions and so on."""
        ...


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
    """Set by whoever changes ``obj``: what a client may not say is looked at once more then."""
    name: str = ""
    """The object's, as far as the request says it: a collection's deletion names none."""
    options: RequestOptions | None = None
    """The request's own; a CONNECT has none."""
    kind: GroupVersionKind | None = None
    """Of ``obj``, where it is not the resource's own (a Scale, an Eviction): it has one version."""
    annotate: Callable[[str, str], None] = lambda key, value: None
    """Tells the audit log something: the first word on a key counts."""
    size: int = 0
    """About how many bytes the objects are: how much work they may be. Whoever makes ``obj`` larger
    says so."""
    seconds_left: Callable[[], float] = lambda: inf
    """Until the request must be answered."""
    round: int = 0
    """Of ``admit``: 1 when it runs once more, because somebody asked for it."""
    again: bool = False
    """Set by whoever changed ``obj`` in a way that others should see."""
    notes: dict[Any, Any] = field(default_factory=dict)
    """What plugins remember of this operation, each under a key of its own."""


class Interest(Flag):
    """Which of its two parts a plugin has for a resource."""

    NONE = 0
    ADMIT = auto()
    VALIDATE = auto()
    BOTH = ADMIT | VALIDATE


class AdmissionChain(Protocol):
    def interest(self, serving: Serving, verb: Verb) -> Interest:
        """Asked once for each resource and verb: what has no part in such writes costs them
        nothing."""
        ...

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        """May change ``operation.obj`` in place; raises an ``ApiError`` to refuse. Whoever need
        not wait answers None: a coroutine for nothing costs more than the question."""
        ...

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        """May only refuse."""
        ...


_Concerned = tuple[AdmissionChain, ...]


class Allocator(Protocol):
    """Gives new objects of a kind what only the server has to give."""

    def allocate(self, operation: Operation) -> None:
        """Changes ``operation.obj`` in place, which is prepared and not yet checked; raises an
        ``ApiError`` where nothing is left."""
        ...


@runtime_checkable
class Configurable(Protocol):
    """A plugin that does what stored configurations say, and nothing without one."""

    @property
    def active(self) -> bool: ...


class Chain:
    """Plugins one after the other; the first refusal ends it. The changing part runs a second time
    where the first asked for it, never a third."""

    def __init__(
        self, plugins: Sequence[AdmissionChain] = (), allocators: Sequence[Allocator] = ()
    ) -> None:
        self._plugins = tuple(plugins)
        self._allocators = tuple(allocators)
        self._concerned: dict[tuple[str, str, bool, Verb], tuple[_Concerned, _Concerned]] = {}
        self._configurable = [each for each in plugins if isinstance(each, Configurable)]

    @property
    def is_configured(self) -> bool:
        """Whether somebody who set up this cluster is asked: then order matters."""
        return any(plugin.active for plugin in self._configurable)

    async def admit(self, operation: Operation) -> None:
        plugins = self._of(operation)[0]
        for plugin in plugins:
            waiting = plugin.admit(operation)
            if waiting is not None:
                await waiting
        if not operation.again:
            return
        operation.round = 1
        for plugin in plugins:
            waiting = plugin.admit(operation)
            if waiting is not None:
                await waiting

    def allocate(self, operation: Operation) -> None:
        for allocator in self._allocators:
            allocator.allocate(operation)

    async def validate(self, operation: Operation) -> None:
        try:
            for plugin in self._of(operation)[1]:
                waiting = plugin.validate(operation)
                if waiting is not None:
                    await waiting
        finally:
            # Notes may lead back to the operation: what goes round in circles is only found by
            # Python's collector, which looks at everything that is stored, too.
            operation.notes.clear()

    def _of(self, operation: Operation) -> tuple[_Concerned, _Concerned]:
        serving, verb = operation.target.serving, operation.verb
        key = (serving.group, serving.plural, serving.namespaced, verb)
        known = self._concerned.get(key)
        if known is None:
            if len(self._concerned) > _MOST_KEPT:
                self._concerned.clear()
            interests = [(plugin, plugin.interest(serving, verb)) for plugin in self._plugins]
            known = self._concerned[key] = (
                tuple(plugin for plugin, part in interests if part & Interest.ADMIT),
                tuple(plugin for plugin, part in interests if part & Interest.VALIDATE),
            )
        return known
