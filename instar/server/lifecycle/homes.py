"""The home of a server: where identity, authorization, namespaces, admission configuration, quotas
and CRDs come from.

``composition.py`` asks a ``Home`` and does not know which it is: ``OwnHome`` is the server's own
store; ``server/cluster_home`` has the main cluster of a server behind an aggregation layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from instar.base.metrics import Metric
from instar.base.supervision import Supervision
from instar.kube.access.authorizers import Authorizers, Recorder
from instar.kube.access.rbac.policy import RbacPolicy
from instar.server.access.authorization import authorizer_of
from instar.server.endpoints.health import Check
from instar.server.identity.tokens import TokenAuthenticator
from instar.server.lifecycle.loaded_settings import LoadedSettings
from instar.server.registry.admission.home_views import HomeViews, OwnViews
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.rbac_policy import StoredPolicy
from instar.server.settings import Settings


class Home(Protocol):
    """What a server reads of its home. A home is a part: started before the catalog."""

    serves_builtins: bool
    """Whether built-in kinds are served here; otherwise only custom resources are."""

    @property
    def views(self) -> HomeViews: ...

    def backend_of(self, group: str, plural: str) -> Backend:
        """Return the backend with the objects of a built-in kind."""
        ...

    def token_authenticator(self) -> TokenAuthenticator | None:
        """Return the authenticator of the home's ServiceAccounts; None: the server's issuer."""
        ...

    def authorizer(self, recorder: Recorder) -> Authorizers: ...

    def checks(self) -> dict[str, Check]:
        """Checks for /readyz."""
        ...

    def metrics(self) -> Iterable[Metric]: ...

    def on_trust_changed(
        self, settings: Settings, folder: Path, use: Callable[[Settings], None]
    ) -> None:
        """Have ``use`` called, from the start on, whenever the home announces other certificates
        and headers of users; with the settings they result in. ``settings`` are those of the flags,
        which take precedence. CAs are written to ``folder``."""
        ...

    async def start(self) -> None: ...

    def start_controllers(self, catalog: Catalog) -> None:
        """Start what writes to the home; called once the catalog is loaded, and not on a read-only
        server."""
        ...

    async def stop(self) -> None: ...


class OwnHome:
    """The server's own store."""

    serves_builtins = True

    def __init__(self, loaded: LoadedSettings, backend: Backend, policy: StoredPolicy) -> None:
        self._loaded, self._backend, self._policy = loaded, backend, policy
        self.views = OwnViews(backend)

    def backend_of(self, group: str, plural: str) -> Backend:
        return self._backend

    def token_authenticator(self) -> None:
        return

    def authorizer(self, recorder: Recorder) -> Authorizers:
        def policy() -> RbacPolicy:
            return self._policy()

        loaded = self._loaded
        return authorizer_of(loaded.authorization, policy, loaded.webhook_authorizer, recorder)

    def checks(self) -> dict[str, Check]:
        return {}

    def metrics(self) -> Iterable[Metric]:
        return ()

    def on_trust_changed(
        self, settings: Settings, folder: Path, use: Callable[[Settings], None]
    ) -> None:
        return

    async def start(self) -> None:
        return

    def start_controllers(self, catalog: Catalog) -> None:
        return

    async def stop(self) -> None:
        return


def home_of(loaded: LoadedSettings, backend: Backend, supervision: Supervision) -> Home:
    if loaded.joined is None:
        return OwnHome(loaded, backend, StoredPolicy(backend))
    # Imported here: few servers serve groups of another cluster.
    from instar.server.cluster_home.home import ClusterHome

    return ClusterHome(loaded.joined, backend, supervision)
