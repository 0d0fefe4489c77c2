"""The main cluster as the home of a server: what ``lifecycle/composition.py`` reads of it.

``join`` reads what must be known before the port opens. ``ClusterHome`` then gives the components
of a server what they need of the main cluster, in the form in which the server's own store would
give it (``lifecycle/homes.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.metrics import Metric
from instar.base.supervision import SupervisedTask, Supervision
from instar.kube.access.authorizers import AllowedPaths, Authorizers, Recorder
from instar.server.access.webhook_authorizer import WebhookAuthorizer
from instar.server.cluster_home.authentication_data import (
    NAME,
    NAMESPACE,
    PATH,
    AuthenticationData,
    read_authentication,
)
from instar.server.cluster_home.following import ClusterFollower
from instar.server.cluster_home.main_cluster import ANSWER_SECONDS, MainCluster, first_answer
from instar.server.cluster_home.metrics import ReviewMetrics, reachable_gauge
from instar.server.cluster_home.quota_charges import QuotaCharges
from instar.server.cluster_home.token_reviews import PATH as TOKEN_REVIEWS
from instar.server.cluster_home.token_reviews import ReviewedTokens
from instar.server.cluster_home.trust import trusting
from instar.server.cluster_home.views import FOLLOWED, ClusterViews
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.backend import Backend
from instar.server.settings import ClusterSettings, Settings
from instar.wire.client.review_client import ReviewClient

log = logging.getLogger(__name__)
ALLOWED_PATHS = ("/healthz", "/livez", "/readyz")
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_BELIEVED_SECONDS = (10.0, 10.0)
_FIELD_SELECTOR = f"metadata.name={NAME}"
UseSettings = Callable[[Settings], None]


@dataclass(frozen=True)
class JoinedCluster:
    """A main cluster that has been reached once."""

    cluster: MainCluster
    wanted: ClusterSettings


async def join(
    settings: Settings, wanted: ClusterSettings, folder: Path
) -> tuple[JoinedCluster, Settings]:
    """Return the main cluster and the settings with what it announces. Raises ``ValueError`` if it
    cannot be reached or announces nothing usable, unless that is tolerated."""
    cluster = MainCluster.of(wanted.kubeconfig)
    try:
        if wanted.authentication_lookup:
            settings = trusting(settings, await _announced(cluster), folder)
    except (ApiError, ValueError) as error:
        if not wanted.tolerates_lookup_failure:
            await cluster.close()
            told = error.message if isinstance(error, ApiError) else str(error)
            raise ValueError(
                f"cannot read ConfigMap {NAMESPACE}/{NAME} of {cluster.access}: {told}"
            ) from error
    return JoinedCluster(cluster, wanted), settings


async def _announced(cluster: MainCluster) -> AuthenticationData:
    path = f"{PATH}/{NAME}"
    return read_authentication(await first_answer(lambda: cluster.asking.get(path)))


class ClusterHome:
    """Identity, authorization, namespaces, admission configuration, quotas and CRDs of the main
    cluster."""

    serves_builtins = False

    def __init__(self, joined: JoinedCluster, own: Backend, supervision: Supervision) -> None:
        """``own`` has the objects of the served groups."""
        cluster = self._cluster = joined.cluster
        self._wanted, self._own, self._supervision = joined.wanted, own, supervision
        self.views = ClusterViews(cluster, joined.wanted.groups, supervision)
        self._authn = ReviewMetrics("authn", "authentication")
        self._authz = ReviewMetrics("authz", "authorization")
        self._tokens = ReviewedTokens(self._reviews(TOKEN_REVIEWS, self._authn))
        self._trust: ClusterFollower | None = None
        self._tasks: list[SupervisedTask] = []

    def backend_of(self, group: str, plural: str) -> Backend:
        """Return the backend of a built-in kind: the mirror, or the server's own for what it keeps
        for itself (leases)."""
        return self.views.backend if (group, plural) in FOLLOWED else self._own

    def token_authenticator(self) -> ReviewedTokens:
        return self._tokens

    def authorizer(self, recorder: Recorder) -> Authorizers:
        reviews = self._reviews(_ACCESS_REVIEWS, self._authz)
        asking = WebhookAuthorizer(reviews, _BELIEVED_SECONDS)
        return Authorizers([AllowedPaths(ALLOWED_PATHS), asking], recorder)

    def _reviews(self, path: str, metrics: ReviewMetrics) -> ReviewClient:
        return ReviewClient(
            self._cluster.asking, path=path, within=ANSWER_SECONDS, measure=metrics.measure()
        )

    def checks(self) -> dict[str, Callable[[], str | None]]:
        return {"main-cluster": self.views.waiting_for}

    def metrics(self) -> Iterable[Metric]:
        reachable = reachable_gauge(lambda: self._cluster.trouble)
        return (*self._authn.all(), *self._authz.all(), reachable)

    def on_trust_changed(self, settings: Settings, folder: Path, use: UseSettings) -> None:
        if self._wanted.authentication_lookup:
            sink = _TrustSink(lambda data: use(trusting(settings, data, folder)))
            self._trust = ClusterFollower(
                self._cluster, f"ConfigMap {NAME}", [PATH], sink, _FIELD_SELECTOR
            )

    def start_controllers(self, catalog: Catalog) -> None:
        charges = QuotaCharges(self._cluster, self.views.backend, catalog)
        charges.follow()
        self._tasks.append(self._supervision.keep("quota-charges", charges.run))

    async def start(self) -> None:
        if self._trust is not None:
            self._tasks.append(self._supervision.keep("following-authentication", self._trust.run))
        await self.views.start()

    async def stop(self) -> None:
        for task in self._tasks:
            await task.stop()
        await self.views.stop()
        await self._cluster.close()


class _TrustSink:
    """Passes on what the ConfigMap announces; a deleted ConfigMap changes nothing."""

    def __init__(self, use: Callable[[AuthenticationData], None]) -> None:
        self._use = use

    async def replace(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            await self.put(obj)

    async def put(self, obj: Object) -> None:
        """Use what is announced; what cannot be used is reported, and the former stays in use."""
        try:
            self._use(read_authentication(obj))
        except (ValueError, OSError) as error:
            log.error("the former certificates and headers stay in use: %s", error)

    async def drop(self, obj: Object) -> None:
        return
