"""The seam of admission: one write as its plugins see it. The plugins are in ``admission/``.

It stands in every write path at the same two places: ``admit`` when the object is prepared and not
yet checked, ``validate`` when it is checked and not yet stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from instar.access.attributes import Attributes
from instar.plain import Object
from instar.registry.resources.resource import Target


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


class Admission(Protocol):
    async def admit(self, operation: Operation) -> None:
        """May change ``operation.obj`` in place; raises an ``ApiError`` to refuse."""
        ...

    async def validate(self, operation: Operation) -> None:
        """May only refuse."""
        ...


class Chain:
    """Plugins one after the other; the first refusal ends it."""

    def __init__(self, plugins: Sequence[Admission] = ()) -> None:
        self._plugins = tuple(plugins)

    async def admit(self, operation: Operation) -> None:
        for plugin in self._plugins:
            await plugin.admit(operation)

    async def validate(self, operation: Operation) -> None:
        for plugin in self._plugins:
            await plugin.validate(operation)
