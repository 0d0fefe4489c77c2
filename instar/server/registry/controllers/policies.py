"""Policy status controller: writes type-checking warnings to ValidatingAdmissionPolicies.

Created by ``server/lifecycle/controller_setup.py``; only the leader acts. Each generation of a
policy is checked once, as upstream does: later schema changes are not considered. The checks are
``instar/kube/admission/policies/type_checking.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base import offload
from instar.base.json_values import Object
from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import put_server_object
from instar.wire.storage.watchcache.collection import Change

if TYPE_CHECKING:
    from instar.server.registry.controllers.policy_types import PolicyTypes

_BACKOFF = Backoff(0.2, 30.0)
_PLURAL = "validatingadmissionpolicies"


class PolicyController:
    """Type-checks each new generation of a policy."""

    def __init__(self, context: Context, catalog: Catalog, duty: Duty) -> None:
        self._context, self._catalog, self._duty = context, catalog, duty
        self._policies = catalog.builtin("admissionregistration.k8s.io", _PLURAL)
        self._changed: Queue[str] = Queue(
            "policy", self._check, _BACKOFF, max_concurrent=1, supervision=context.supervision
        )
        self._types: PolicyTypes | None = None

    def start(self) -> None:
        self._policies.objects.observers.append(self._policy_changed)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._duty.on_elected(self._elected)
        self._look_at_all()

    async def stop(self) -> None:
        await self._changed.stop()

    async def _elected(self) -> None:
        self._look_at_all()

    def _look_at_all(self) -> None:
        for name in self._policies.objects.entries:
            self._changed.add(name)

    def _policy_changed(self, change: Change[CacheEntry]) -> None:
        if change.new is not None:
            self._changed.add(change.suffix)

    async def _check(self, name: str) -> None:
        entry = self._policies.objects.entries.get(name)
        if entry is None or not self._duty.leads:
            return
        try:
            policy = entry.decode()
        except UnreadableEntry:
            return
        status, generation = policy.get("status") or {}, policy["metadata"].get("generation")
        if "typeChecking" in status and status.get("observedGeneration") == generation:
            return
        warnings = await self._warnings(policy["spec"])
        found: Object = {"expressionWarnings": warnings} if warnings else {}
        policy["status"] = {**status, "observedGeneration": generation, "typeChecking": found}
        backend = self._context.backend
        await put_server_object(backend, self._policies, name, policy, entry.revision)

    async def _warnings(self, spec: Object) -> list[Object]:
        if self._types is None:
            # Imported here, because it needs CEL, which most servers start without.
            from instar.server.registry.controllers.policy_types import PolicyTypes

            self._types = PolicyTypes(self._catalog)
        # In a thread however small the policy is: the schemas of its kinds may be large.
        return await offload.run_in_thread(self._types.check, spec, self._types.of(spec))
