"""A plugin that most servers never need: made, and imported, when the first configuration of its
kind is stored. Until then it costs the look into an empty dict."""

from __future__ import annotations

from collections.abc import Callable

from instar.registry.resources.admission import Admission, Operation
from instar.registry.stored.backend import Backend
from instar.storage.keys import collection_prefix


class OnDemand:
    def __init__(
        self,
        backend: Backend,
        group: str,
        plural: str,
        make: Callable[[], Admission],
        *,
        always: bool = False,
    ) -> None:
        """``always``: it has something to do though nothing is stored."""
        self._objects = backend.collection(collection_prefix(group, plural))
        self._make = make
        self._always = always
        self._made: Admission | None = None

    @property
    def active(self) -> bool:
        return bool(self._objects.entries) or self._always

    async def admit(self, operation: Operation) -> None:
        if self._objects.entries or self._always:
            await self._plugin().admit(operation)

    async def validate(self, operation: Operation) -> None:
        if self._objects.entries or self._always:
            await self._plugin().validate(operation)

    def _plugin(self) -> Admission:
        if self._made is None:
            self._made = self._make()
        return self._made
