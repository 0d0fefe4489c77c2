"""A plugin that most servers never need: made, and imported, when the first configuration of its
kind is stored. Until then it costs the look into an empty dict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from instar.server.registry.resources.admission import AdmissionChain, Interest, Operation, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.keys import collection_prefix


class OnDemand:
    def __init__(
        self,
        backend: Backend,
        group: str,
        plural: str,
        part: Interest,
        make: Callable[[], AdmissionChain],
        *,
        always: bool = False,
    ) -> None:
        """``always``: it has something to do though nothing is stored."""
        self._objects = backend.collection(collection_prefix(group, plural))
        self._part = part
        self._make = make
        self._always = always
        self._made: AdmissionChain | None = None

    @property
    def active(self) -> bool:
        return bool(self._objects.entries) or self._always

    def interest(self, serving: Serving, verb: Verb) -> Interest:
        return self._part

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        if self._objects.entries or self._always:
            return self._plugin().admit(operation)
        return None

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        if self._objects.entries or self._always:
            return self._plugin().validate(operation)
        return None

    def _plugin(self) -> AdmissionChain:
        if self._made is None:
            self._made = self._make()
        return self._made
