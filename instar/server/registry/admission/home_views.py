"""What admission reads of the server's home: namespaces, configurations, quotas and parameters.

``server/lifecycle/admission_setup.py`` passes a ``HomeViews`` to the plugins. ``OwnViews`` is the
server's own store; ``server/cluster_home`` has the main cluster's. A plugin does not know which of
the two it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from instar.server.registry.resources.admission import AdmissionPlugin
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.backend import Backend

if TYPE_CHECKING:
    from instar.server.registry.admission.policies.params import ParamSource

KindOf = Callable[[str, str], Resource | None]
"""(group, kind) → the resource of that kind."""


class HomeViews(Protocol):
    """Collections of the home, and questions about single objects of it."""

    @property
    def backend(self) -> Backend:
        """Has the collections of namespaces, admission configurations and quotas."""
        ...

    def plugins(self) -> Sequence[AdmissionPlugin]:
        """Return admission plugins of the home, called before all others."""
        ...

    async def refresh_namespace(self, name: str) -> None:
        """Bring the backend's Namespace up to date, because one that is missing or terminating
        there may have been created anew. Raises ``ApiError``."""
        ...

    def params(self, of_kind: KindOf) -> ParamSource:
        """Return where policies find their parameters. ``of_kind`` finds kinds of this server."""
        ...


class OwnViews:
    """The server's own store."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def plugins(self) -> Sequence[AdmissionPlugin]:
        return ()

    async def refresh_namespace(self, name: str) -> None:
        # Another replica may have written it a moment ago.
        await self.backend.consistent()

    def params(self, of_kind: KindOf) -> ParamSource:
        # Imported here: most servers have no policy.
        from instar.server.registry.admission.policies.params import Params

        return Params(self.backend, of_kind)
