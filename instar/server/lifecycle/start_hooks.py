"""Health checks with the names of kube-apiserver's post-start hooks, each with its condition here.

``composition.py`` makes them for ``endpoints/health.py``. A hook that creates objects is done once
they are stored; one that starts controllers, once the server has started its own; one that reads,
once the store is read. What was done once stays done, as upstream, even if an object is deleted
before a client has asked for the check.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from instar.server.endpoints.health import Check
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
LONGEST_WAIT = 10.0
"""Seconds for which a start waits for its hooks; after that ``/readyz`` tells which is not done."""
Place = tuple[str, str, str]
"""Group, plural and key suffix of an object."""
_RBAC = "rbac.authorization.k8s.io"
_FLOWS = "flowcontrol.apiserver.k8s.io"
READING = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "storage-readiness",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "crd-informer-synced",
    "start-kube-aggregator-informers",
)
STARTED = (
    "start-apiextensions-controllers",
    "start-service-ip-repair-controllers",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "start-legacy-token-tracking-controller",
    "apiservice-registration-controller",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
_FAIR = ("priority-and-fairness-config-consumer", "priority-and-fairness-filter")
_NAMESPACES = "start-system-namespaces-controller"
_INITIAL = ("default", "kube-system", "kube-public", "kube-node-lease")
_ROLES = "rbac/bootstrap-roles"
_REGISTRATION = "kube-apiserver-autoregistration"
_BOOTSTRAP: dict[str, tuple[Place, ...]] = {
    "scheduling/bootstrap-system-priority-classes": tuple(
        ("scheduling.k8s.io", "priorityclasses", f"system-{name}-critical")
        for name in ("cluster", "node")
    ),
    "start-cluster-authentication-info-controller": (
        ("", "configmaps", "kube-system/extension-apiserver-authentication"),
    ),
    "bootstrap-controller": (("", "services", "default/kubernetes"),),
    "start-kubernetes-service-cidr-controller": (
        ("networking.k8s.io", "servicecidrs", "kubernetes"),
    ),
    "priority-and-fairness-config-producer": (
        (_FLOWS, "flowschemas", "catch-all"),
        (_FLOWS, "prioritylevelconfigurations", "catch-all"),
    ),
    _REGISTRATION: (("apiregistration.k8s.io", "apiservices", "v1."),),
}
"""Hooks of the bootstrap controller and the objects that it has stored when they are done."""


class StoredOnce:
    """Fails until each of its objects has been in the watch cache."""

    def __init__(self, catalog: Callable[[], Catalog], places: tuple[Place, ...]) -> None:
        self._catalog, self._missing = catalog, list(places)
        self.done = asyncio.Event()

    def follow(self) -> None:
        """Notice the objects also when they are deleted before the next call."""
        self()
        for place in self._missing:
            group, plural, _ = place
            resource = self._catalog().find(group, plural)
            if resource is not None:
                resource.objects.observers.append(partial(self._changed, place))

    def _changed(self, place: Place, change: Change[CacheEntry]) -> None:
        if change.suffix == place[2] and place in self._missing:
            self._missing.remove(place)
            self()

    def __call__(self) -> str | None:
        while self._missing:
            group, plural, suffix = self._missing[-1]
            resource = self._catalog().find(group, plural)
            if resource is not None and suffix not in resource.objects.entries:
                return f"not finished: {plural} {suffix} is not stored yet"
            self._missing.pop()
        self.done.set()
        return None


def follow_stored(checks: Iterable[Check]) -> None:
    """Let the checks of stored objects follow their collections, which are in the catalog now."""
    for check in checks:
        if isinstance(check, StoredOnce):
            check.follow()


async def stored_once(checks: Iterable[Check]) -> None:
    """Wait until the objects are stored, but not for ever: the server answers requests without
    them, and the leader that should store them may be another replica."""
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            for check in checks:
                if isinstance(check, StoredOnce):
                    await check.done.wait()
    except TimeoutError:
        log.warning("the initial objects were not stored within %g seconds", LONGEST_WAIT)


def start_hooks(
    catalog: Callable[[], Catalog],
    reading: Check,
    starting: Check,
    *,
    creates: bool,
    bootstraps: bool,
    roles: bool,
    fair: bool,
) -> dict[str, Check]:
    """Return the checks by the name of the hook.

    ``reading`` fails until the store is read, ``starting`` until the controllers have started.
    ``creates``: whether this server stores the initial namespaces; with ``bootstraps`` also the
    objects of the bootstrap controller, with ``roles`` the default roles. ``fair``: whether
    priority and fairness decides.
    """
    found = dict.fromkeys(READING, reading) | dict.fromkeys(STARTED, starting)
    if fair:
        found |= dict.fromkeys(_FAIR, starting)
    stored: dict[str, tuple[Place, ...]] = {}
    if creates:
        stored[_NAMESPACES] = tuple(("", "namespaces", name) for name in _INITIAL)
    if roles:
        stored[_ROLES] = ((_RBAC, "clusterrolebindings", "system:basic-user"),)
    if bootstraps:
        stored |= _BOOTSTRAP
    for hook in (_NAMESPACES, *_BOOTSTRAP):
        found[hook] = StoredOnce(catalog, stored[hook]) if hook in stored else starting
    if roles:
        found[_ROLES] = StoredOnce(catalog, stored[_ROLES])
    checks = {f"poststarthook/{hook}": check for hook, check in found.items()}
    return {**checks, "autoregister-completion": found[_REGISTRATION]}
