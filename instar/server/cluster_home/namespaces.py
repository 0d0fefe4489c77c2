"""Live lookups of Namespaces of the main cluster, for requests that come before the watch.

``views.py`` calls it when a namespace is missing or terminating in the mirror, as kube-apiserver's
NamespaceLifecycle plugin looks it up live then.
"""

from __future__ import annotations

from instar.base.errors import ApiError, NotFound, ServiceUnavailable
from instar.base.single_flight import SingleFlight
from instar.server.cluster_home.main_cluster import MainCluster
from instar.server.cluster_home.mirror import MirroredCollection
from instar.wire.client.paths import resource_path


class NamespaceLookups:
    """Asks for single Namespaces; requests for the same one share a call."""

    def __init__(self, cluster: MainCluster, namespaces: MirroredCollection) -> None:
        self._cluster, self._namespaces = cluster, namespaces
        self._calls = SingleFlight()

    async def refresh(self, name: str) -> None:
        """Bring the mirror up to date. Raises ``ServiceUnavailable``."""
        await self._calls.once(name, lambda: self._look_up(name))

    async def _look_up(self, name: str) -> None:
        try:
            found = await self._cluster.asking.get(resource_path("", "v1", "namespaces", name=name))
        except NotFound:
            await self._namespaces.forget(name)
        except ApiError as error:
            raise ServiceUnavailable(
                f"the main cluster cannot be asked for the namespace {name}: {error.message}",
                retry_after=1,
            ) from error
        else:
            await self._namespaces.put(found)
