"""RBAC policy of the stored roles and bindings, for the RBAC authorizer.

Made by ``server/lifecycle/composition.py``. The policy is loaded from the cache at the first
authorization that needs RBAC, and kept current by the collections' changes; a server that only its
admin uses never loads it. The rules are in ``kube/access/rbac``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from instar.base.json_values import Object
from instar.kube.access.rbac.policy import GROUP, Place, RbacPolicy
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.watchcache.collection import Change

Put = Callable[[RbacPolicy, Place, Object], None]
Drop = Callable[[RbacPolicy, Place], None]
_KINDS: tuple[tuple[str, Put, Drop], ...] = (
    ("clusterroles", RbacPolicy.put_role, RbacPolicy.drop_role),
    ("roles", RbacPolicy.put_role, RbacPolicy.drop_role),
    ("clusterrolebindings", RbacPolicy.put_binding, RbacPolicy.drop_binding),
    ("rolebindings", RbacPolicy.put_binding, RbacPolicy.drop_binding),
)


class StoredPolicy:
    """Callable that returns the current policy."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._policy: RbacPolicy | None = None
        self._follows = False

    def __call__(self) -> RbacPolicy:
        policy = self._policy
        return policy if policy is not None else self._read()

    def _read(self) -> RbacPolicy:
        policy = self._policy = RbacPolicy()
        for plural, put, drop in _KINDS:
            objects = self._backend.collection(collection_prefix(GROUP, plural))
            for suffix, entry in objects.entries.items():
                _take(policy, put, drop, suffix, entry)
            if not self._follows:
                objects.listeners.append(partial(self._changed, put, drop))
        if not self._follows:
            self._follows = True
            self._backend.cache.on_reset(self._forget)
        return policy

    def _forget(self) -> None:
        """Load the policy again at the next call, because the cache was reloaded."""
        self._policy = None

    def _changed(self, put: Put, drop: Drop, change: Change[CacheEntry]) -> None:
        if self._policy is not None:
            _take(self._policy, put, drop, change.suffix, change.new)


def _take(policy: RbacPolicy, put: Put, drop: Drop, suffix: str, entry: CacheEntry | None) -> None:
    namespace, _, name = suffix.rpartition("/")
    try:
        obj = None if entry is None else entry.decode()
    except UnreadableEntry:
        obj = None  # an unreadable role or binding grants nothing
    if obj is None:
        drop(policy, (namespace, name))
    else:
        put(policy, (namespace, name), obj)
