"""Admission chain: the plugin interface, and the operation that the plugins see.

The write verbs call ``admit`` before an object is prepared and validated, and ``validate`` after
that, before it is stored. The plugins themselves are in ``registry/admission``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from enum import Flag, StrEnum, auto
from math import inf
from typing import Any, Protocol, runtime_checkable

from instar.base.errors import ServiceUnavailable
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.resources.resource import Target
from instar.server.registry.resources.serving import Serving

_MOST_KEPT = 10_000
"""Resources of which the chain remembers the interested plugins; CRDs come and go."""


class Verb(StrEnum):
    """The operations of AdmissionReview."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class RequestOptions(Protocol):
    """The options of a request (create, update, delete)."""

    def document(self, verb: Verb) -> Object:
        """Return the options as an API object: CreateOptions and so on."""
        ...


@dataclass(slots=True)
class Operation:
    """One write or connection, as the admission plugins see it."""

    verb: Verb
    asked: Attributes
    target: Target
    obj: Object | None
    """The object at the request's version; ``admit`` may change it in place. None for a delete."""
    old: Object | None = None
    subresource: str = ""
    dry_run: bool = False
    warn: Callable[[str], None] = lambda text: None
    changed: bool = False
    """Set by a plugin that changes ``obj``: the object is then cleaned and pruned again."""
    name: str = ""
    """The object's name in the request; empty in the deletion of a collection."""
    options: RequestOptions | None = None
    """The request's options; None for a CONNECT."""
    kind: GroupVersionKind | None = None
    """The kind of ``obj`` where it is not the resource's own (a Scale, an Eviction)."""
    annotate: Callable[[str, str], None] = lambda key, value: None
    """Adds an audit annotation; the first value of a key counts."""
    size: int = 0
    """The approximate size of the objects in bytes, for ``offload.run``. A plugin that makes
    ``obj`` larger raises it."""
    seconds_left: Callable[[], float] = lambda: inf
    """Returns the seconds until the request's deadline."""
    round: int = 0
    """1 during reinvocation of ``admit``, else 0."""
    again: bool = False
    """Set by a plugin after which the others should be reinvoked."""
    notes: dict[Any, Any] = field(default_factory=dict)
    """State of plugins during this operation, each under its own key."""
    undo: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Gives back what allocators stored for this operation, should the object not be stored."""

    async def give_back(self, failure: Exception) -> None:
        """Undo allocations, unless the object may have been stored in spite of the failure."""
        if self.undo and not isinstance(failure, ServiceUnavailable):
            for each in self.undo:
                await each()
            self.undo.clear()


class PluginPhases(Flag):
    """Which of the two phases a plugin takes part in."""

    NONE = 0
    ADMIT = auto()
    VALIDATE = auto()
    BOTH = ADMIT | VALIDATE


class AdmissionPlugin(Protocol):
    """An admission plugin."""

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        """Return the phases for a resource and verb. Called once for each, so that a plugin without
        interest costs its writes nothing."""
        ...

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        """Change ``operation.obj`` in place, or raise an ``ApiError`` to refuse it. Returns None
        where nothing is awaited, which saves a coroutine."""
        ...

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        """Raise an ``ApiError`` to refuse the operation."""
        ...


_Concerned = tuple[AdmissionPlugin, ...]


class Allocator(Protocol):
    """Assigns values that only the server has to new objects, such as cluster IPs and node
    ports."""

    def allocate(self, operation: Operation) -> Awaitable[None] | None:
        """Change ``operation.obj`` in place, which is prepared and not yet validated. Raises an
        ``ApiError`` where no value is left. What it stores it can undo by ``operation.undo``.
        Returns None where nothing is awaited."""
        ...


@runtime_checkable
class Configurable(Protocol):
    """A plugin that does nothing without stored configurations (webhooks, policies)."""

    @property
    def active(self) -> bool: ...


class AdmissionChain:
    """Calls the plugins in order; the first refusal ends it. The mutating phase runs a second time
    if a plugin requested reinvocation, never a third."""

    def __init__(
        self, plugins: Sequence[AdmissionPlugin] = (), allocators: Sequence[Allocator] = ()
    ) -> None:
        self._plugins = tuple(plugins)
        self._allocators = tuple(allocators)
        self._concerned: dict[tuple[str, str, bool, Verb], tuple[_Concerned, _Concerned]] = {}
        self._configurable = [each for each in plugins if isinstance(each, Configurable)]

    @property
    def is_configured(self) -> bool:
        """Whether a webhook or policy is configured: then the order of writes matters."""
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

    async def allocate(self, operation: Operation) -> None:
        for allocator in self._allocators:
            waiting = allocator.allocate(operation)
            if waiting is not None:
                await waiting

    async def validate(self, operation: Operation) -> None:
        try:
            for plugin in self._of(operation)[1]:
                waiting = plugin.validate(operation)
                if waiting is not None:
                    await waiting
        finally:
            # Notes may refer to the operation. Clearing them breaks the cycle, which would wait for
            # the garbage collector, and its runs visit all cached objects.
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
                tuple(plugin for plugin, part in interests if part & PluginPhases.ADMIT),
                tuple(plugin for plugin, part in interests if part & PluginPhases.VALIDATE),
            )
        return known
