"""Admission plugin that is imported and created when the first object of its kind is stored.

Used by ``server/lifecycle/admission_setup.py`` for webhooks and policies, which most servers never
need. Until such an object is stored, the plugin costs each write a look-up in an empty dict.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from instar.server.registry.resources.admission import (
    AdmissionPlugin,
    Operation,
    PluginPhases,
    Verb,
)
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.keys import collection_prefix


class LazyPlugin:
    """Creates the wrapped plugin on first use."""

    def __init__(
        self,
        backend: Backend,
        group: str,
        plural: str,
        part: PluginPhases,
        make: Callable[[], AdmissionPlugin],
        *,
        always: bool = False,
    ) -> None:
        """``always``: the plugin is active even though no object is stored."""
        self._objects = backend.collection(collection_prefix(group, plural))
        self._part = part
        self._make = make
        self._always = always
        self._made: AdmissionPlugin | None = None

    @property
    def active(self) -> bool:
        return bool(self._objects.entries) or self._always

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return self._part

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        if self._objects.entries or self._always:
            return self._plugin().admit(operation)
        return None

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        if self._objects.entries or self._always:
            return self._plugin().validate(operation)
        return None

    def _plugin(self) -> AdmissionPlugin:
        if self._made is None:
            self._made = self._make()
        return self._made
