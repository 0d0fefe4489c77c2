"""The main cluster's collections that admission and the catalog read.

``home.py`` makes one per server. The list of followed collections is here; ``mirror.py`` keeps
them, ``following.py`` follows them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from instar.base.json_values import Object
from instar.base.supervision import SupervisedTask, Supervision
from instar.server.cluster_home.following import ClusterFollower
from instar.server.cluster_home.main_cluster import MainCluster
from instar.server.cluster_home.mirror import Mirror, MirroredCollection, Selects
from instar.server.cluster_home.namespaces import NamespaceLookups
from instar.server.cluster_home.outdated import OutdatedHome
from instar.server.registry.admission.home_views import KindOf
from instar.server.registry.resources.admission import AdmissionPlugin
from instar.server.registry.stored.backend import Backend

if TYPE_CHECKING:
    from instar.server.cluster_home.params import FollowedParams

SERVED_LABEL = "instar.dev/served"
"""A CRD of the main cluster with this label set to ``true`` is served, whatever its group."""
_CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
_ADMISSION = "admissionregistration.k8s.io"


class _Kind(NamedTuple):
    group: str
    plural: str
    kind: str
    versions: tuple[str, ...] = ("v1",)
    """The versions to follow, the first that is served. They must be equal in form."""


_KINDS = (
    _Kind("", "namespaces", "Namespace"),
    _Kind("", "resourcequotas", "ResourceQuota"),
    _Kind(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    _Kind(_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    _Kind(_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    _Kind(_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    _Kind(_ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", ("v1", "v1beta1")),
    _Kind(
        _ADMISSION,
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        ("v1", "v1beta1"),
    ),
    _Kind(*_CRDS, "CustomResourceDefinition"),
)
FOLLOWED = frozenset((each.group, each.plural) for each in _KINDS)
"""(group, plural) of the collections in the mirror."""


class ClusterViews:
    """The mirror, its followers and the lookups of single objects."""

    def __init__(
        self, cluster: MainCluster, groups: Sequence[str], supervision: Supervision
    ) -> None:
        """``groups``: API groups whose CRDs are served, besides labelled CRDs."""
        self._cluster, self._supervision = cluster, supervision
        self.mirror = Mirror()
        self._tasks: list[SupervisedTask] = []
        self._params: list[FollowedParams] = []
        collections = {kind: self._collection(kind, frozenset(groups)) for kind in _KINDS}
        self._followers = [
            ClusterFollower(cluster, kind.plural, _paths(kind), sink)
            for kind, sink in collections.items()
        ]
        self._lookups = NamespaceLookups(cluster, collections[_KINDS[0]])

    def _collection(self, kind: _Kind, groups: frozenset[str]) -> MirroredCollection:
        identity = (f"{kind.group}/v1" if kind.group else "v1", kind.kind)
        chosen: Selects = _served_from(groups) if (kind.group, kind.plural) == _CRDS else _any
        return MirroredCollection(self.mirror, kind.group, kind.plural, identity, chosen)

    @property
    def backend(self) -> Backend:
        return self.mirror.backend

    def plugins(self) -> Sequence[AdmissionPlugin]:
        return (OutdatedHome(lambda: self._cluster.trouble),)

    async def refresh_namespace(self, name: str) -> None:
        await self._lookups.refresh(name)
        await self.backend.consistent()

    def params(self, of_kind: KindOf) -> FollowedParams:
        # Imported here: most clusters have no policy with parameters.
        from instar.server.cluster_home.params import FollowedParams
        from instar.server.registry.admission.policies.params import Params

        own = Params(self.backend, of_kind)
        self._params.append(FollowedParams(self._cluster, own, self._supervision))
        return self._params[-1]

    async def start(self) -> None:
        """Start to follow; returns once every collection is complete."""
        await self.backend.start()
        keep = self._supervision.keep
        self._tasks.append(keep("mirror-compaction", self.mirror.compactor().run))
        for follower in self._followers:
            self._tasks.append(keep(f"following-{follower.name}", follower.run))
        for follower in self._followers:
            await follower.synced.wait()
        await self.backend.consistent()

    async def stop(self) -> None:
        for params in self._params:
            await params.stop()
        await asyncio.gather(*(task.stop() for task in self._tasks))
        await self.backend.stop()

    def waiting_for(self) -> str | None:
        """Which collections are not complete yet; None once all are."""
        missing = [each.name for each in self._followers if not each.synced.is_set()]
        return f"not yet read from the main cluster: {', '.join(missing)}" if missing else None


def _paths(kind: _Kind) -> list[str]:
    if not kind.group:
        return [f"/api/{version}/{kind.plural}" for version in kind.versions]
    return [f"/apis/{kind.group}/{version}/{kind.plural}" for version in kind.versions]


def _any(obj: Object) -> bool:
    return True


def _served_from(groups: frozenset[str]) -> Selects:
    def selects(crd: Object) -> bool:
        labels = crd["metadata"].get("labels") or {}
        return crd["spec"].get("group") in groups or labels.get(SERVED_LABEL) == "true"

    return selects
