"""The stored roles and bindings as ``access/rbac``'s policy: read at the first question, followed
from then on. A server that only its admin asks never reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from instar.access.rbac.policy import GROUP, Place, Policy
from instar.plain import Object
from instar.registry.stored.backend import Backend
from instar.registry.stored.entry import Entry, Unreadable
from instar.storage.collection import Change
from instar.storage.keys import collection_prefix

Put = Callable[[Policy, Place, Object], None]
Drop = Callable[[Policy, Place], None]
_KINDS: tuple[tuple[str, Put, Drop], ...] = (
    ("clusterroles", Policy.put_role, Policy.drop_role),
    ("roles", Policy.put_role, Policy.drop_role),
    ("clusterrolebindings", Policy.put_binding, Policy.drop_binding),
    ("rolebindings", Policy.put_binding, Policy.drop_binding),
)


class StoredPolicy:
    """Call it for the policy of now."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._policy: Policy | None = None
        self._follows = False

    def __call__(self) -> Policy:
        policy = self._policy
        return policy if policy is not None else self._read()

    def _read(self) -> Policy:
        policy = self._policy = Policy()
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
        """Everything was loaded anew: read again at the next question."""
        self._policy = None

    def _changed(self, put: Put, drop: Drop, change: Change[Entry]) -> None:
        if self._policy is not None:
            _take(self._policy, put, drop, change.suffix, change.new)


def _take(policy: Policy, put: Put, drop: Drop, suffix: str, entry: Entry | None) -> None:
    namespace, _, name = suffix.rpartition("/")
    try:
        obj = None if entry is None else entry.decode()
    except Unreadable:
        obj = None  # what cannot be read grants nothing
    if obj is None:
        drop(policy, (namespace, name))
    else:
        put(policy, (namespace, name), obj)
