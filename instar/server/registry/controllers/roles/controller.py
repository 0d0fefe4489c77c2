"""Role controller: creates and repairs the default RBAC roles and bindings, and aggregates
ClusterRoles.

Created by ``server/lifecycle/controller_setup.py``; only the leader acts. Rules and subjects that a
user added are kept, and an object with the autoupdate annotation set to false is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from instar.base import errors, offload
from instar.base.json_values import Object, copy_json
from instar.kube.access.rbac.aggregation import aggregate_all
from instar.kube.access.rbac.policy import GROUP
from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.controllers.roles.defaults import (
    AUTOUPDATE,
    component_bindings,
    component_roles,
    default_bindings,
    default_roles,
    update_to_default,
)
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.verbs.apply import apply_configuration
from instar.server.registry.verbs.delete import delete
from instar.server.registry.verbs.delete_options import DeleteOptions
from instar.server.registry.verbs.write import create, update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
_OPTIONS = WriteOptions(manager="kube-apiserver")
_RULES = UpdateRules(unconditional=True, uid_is_precondition=False)
_AGGREGATING = WriteOptions(manager="clusterrole-aggregation-controller", force=True)
_BACKOFF = Backoff(0.2, 30.0)
_DEFAULTS, _COMPONENTS, _AGGREGATION = "defaults", "components", "aggregation"
"""Queue keys. One is for all aggregated roles, because a changed role may be part of any."""


class RoleController:
    """Keeps default and aggregated roles current."""

    def __init__(
        self,
        context: Context,
        catalog: Catalog,
        duty: Duty,
        *,
        aggregates: bool = True,
    ) -> None:
        """``aggregates``: whether ClusterRoles with an aggregationRule get their rules."""
        self._context, self._catalog, self._duty = context, catalog, duty
        self._aggregates = aggregates
        self._roles = catalog.builtin(GROUP, "clusterroles")
        self._work: Queue[str] = Queue(
            "roles:", self._reconcile, _BACKOFF, max_concurrent=1, supervision=context.supervision
        )

    async def start(self) -> None:
        """Start; the server waits for the default roles of users, because every user but admins
        needs them. Roles of Kubernetes' components follow while requests are served already."""
        if self._aggregates:
            self._roles.objects.observers.append(self._role_changed)
            self._context.backend.cache.on_reset(lambda: self._work.add(_AGGREGATION))
            self._duty.on_elected(self._elected)
        try:
            await self._create_defaults()
        except errors.ApiError as error:
            log.warning("cannot create all default roles, will retry: %s", error)
            self._work.add(_DEFAULTS)
        self._work.add(_COMPONENTS)

    async def stop(self) -> None:
        await self._work.stop()

    async def _elected(self) -> None:
        await self._aggregate()

    async def _reconcile(self, what: str) -> None:
        steps = {
            _DEFAULTS: self._create_defaults,
            _COMPONENTS: self._create_component_roles,
            _AGGREGATION: self._aggregate,
        }
        await steps[what]()

    # --- default roles ------------------------------------------------------------------------

    async def _create_defaults(self) -> None:
        await self._ensure_all(default_roles())
        await self._ensure_all(default_bindings())

    async def _create_component_roles(self) -> None:
        await self._ensure_all(component_roles())
        await self._ensure_all(component_bindings())

    async def _ensure_all(self, pieces: Iterable[Object]) -> None:
        await asyncio.gather(*(self._ensure_object(piece) for piece in pieces))

    async def _ensure_object(self, piece: Object) -> None:
        resource = self._catalog.of_kind(GROUP, piece["kind"])
        assert resource is not None, f"{piece['kind']} is a kind of ours"
        target = _target(resource, piece["metadata"])
        entry = target.entry()
        try:
            obj = None if entry is None else entry.decode()
        except UnreadableEntry:
            # must be repaired by an operator; its name is taken, so no new one can be written
            return
        if obj is not None and _bound_elsewhere(obj, piece):
            with contextlib.suppress(errors.NotFound):
                await delete(self._context, target, DeleteOptions())
            obj = None
        if obj is None:
            await self._make(target, copy_json(piece))
        elif update_to_default(obj, piece) is not None:
            await self._mend(target, piece)

    async def _make(self, target: Target, piece: Object) -> None:
        target.serving.strategy.decode(piece, target.version)
        try:
            await create(self._context, target.named(""), piece, _OPTIONS)
        except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
            return  # another replica was first, or the namespace does not exist

    async def _mend(self, target: Target, piece: Object) -> None:
        async def propose(old: Object, entry: CacheEntry) -> Proposal:
            return Proposal(update_to_default(old, piece) or old)

        await update(self._context, target, propose, _OPTIONS, _RULES)

    # --- aggregated roles ---------------------------------------------------------------------

    def _role_changed(self, change: Change[CacheEntry]) -> None:
        if self._duty.leads:
            self._work.add(_AGGREGATION)

    async def _aggregate(self) -> None:
        if not self._duty.leads:
            return
        entries = list(self._roles.objects.entries.values())
        size = sum(entry.size for entry in entries)
        for name, rules in (await offload.run(size, lambda: _stale(entries))).items():
            await self._apply(name, rules)

    async def _apply(self, name: str, rules: list[Object]) -> None:
        serving = self._roles.serving
        target = _target(self._roles, {"name": name})
        config: Object = {
            "apiVersion": serving.storage.api_version,
            "kind": serving.kind,
            "metadata": {"name": name},
            "rules": rules,
        }
        await apply_configuration(self._context, target, config, (), _AGGREGATING, "")


def _stale(entries: list[CacheEntry]) -> dict[str, list[Object]]:
    """Return the aggregated roles with outdated rules, and the rules they should have."""
    roles: dict[str, Object] = {}
    for entry in entries:
        try:
            roles[entry.suffix] = entry.decode()
        except UnreadableEntry:
            continue
    wanted = aggregate_all(roles)
    return {
        name: rules for name, rules in wanted.items() if (roles[name].get("rules") or []) != rules
    }


def _bound_elsewhere(obj: Object, wanted: Object) -> bool:
    if "roleRef" not in wanted or obj.get("roleRef") == wanted["roleRef"]:
        return False
    return (obj["metadata"].get("annotations") or {}).get(AUTOUPDATE) != "false"


def _target(resource: Resource, metadata: Object) -> Target:
    serving = resource.serving
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    return Target(resource, serving, resource.codec, serving.storage, namespace, name)
