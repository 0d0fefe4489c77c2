"""Controllers of a server: everything that writes to the store without a request.

``composition.py`` makes them once and starts them after the store is read. What each of them does
is in ``registry/controllers`` and ``registry/insight``.
"""

from __future__ import annotations

from instar.base.fast_dataclass import dataclass
from instar.server.access.authorization import RBAC
from instar.server.lifecycle.loaded_settings import LoadedSettings
from instar.server.lifecycle.parts import Part, Startable
from instar.server.registry.controllers import controller_names as names
from instar.server.registry.controllers.bootstrap.controller import BootstrapController
from instar.server.registry.controllers.conversion_prefetch import ConversionPrefetch
from instar.server.registry.controllers.crds import CrdController
from instar.server.registry.controllers.disruption import DisruptionController
from instar.server.registry.controllers.endpoint_mirror import EndpointMirror
from instar.server.registry.controllers.event_ttl import EventExpiry
from instar.server.registry.controllers.flow_schemas import FlowSchemaController
from instar.server.registry.controllers.garbage.collector import GarbageCollector
from instar.server.registry.controllers.leadership import Leadership, StoreSharing
from instar.server.registry.controllers.manager_lease import (
    Duty,
    ManagerLease,
    YieldingLeadership,
)
from instar.server.registry.controllers.migrations import MigrationController
from instar.server.registry.controllers.namespaces import InitialNamespaces, NamespaceController
from instar.server.registry.controllers.policies import PolicyController
from instar.server.registry.controllers.quotas import QuotaController
from instar.server.registry.controllers.roles.controller import RoleController
from instar.server.registry.controllers.service_ranges import ServiceRangeController
from instar.server.registry.controllers.storage_protection import StorageProtection
from instar.server.registry.insight.census import ServerCensus
from instar.server.registry.insight.usage import UsageKeeper, UsageRecorder
from instar.server.registry.kinds.migrations import GROUP as MIGRATION_GROUP
from instar.server.registry.kinds.migrations import PLURAL as MIGRATIONS
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.wire.storage.store import Local, RevisionTracker, Store


@dataclass(frozen=True, kw_only=True)
class Controllers:
    """The controllers of one server; optional ones are None where they are off."""

    crds: CrdController
    initial_namespaces: InitialNamespaces
    namespaces: NamespaceController | None
    usage: UsageKeeper
    migrations: MigrationController
    """Made in any case: it describes migrations, too."""
    migrates: bool
    garbage: GarbageCollector | None
    quotas: QuotaController | None
    policies: PolicyController | None
    flow_schemas: FlowSchemaController
    storage_protection: StorageProtection
    disruption: DisruptionController | None
    endpoint_mirror: EndpointMirror | None
    service_ranges: ServiceRangeController | None
    expiry: EventExpiry
    prefetch: ConversionPrefetch | None
    roles: RoleController | None
    leadership: Leadership
    manager: ManagerLease
    bootstrap: BootstrapController | None
    """Started apart from the others: it writes the server's address."""

    def parts(self) -> list[Part]:
        """The parts in start order: controllers that act as leader come before the leader
        election."""
        named: dict[str, Startable | None] = {
            "manager lease": self.manager,
            "initial namespaces": self.initial_namespaces,
            "namespace controller": self.namespaces,
            "CRD controller": self.crds,
            "usage counts": self.usage,
            "storage version migrations": self.migrations if self.migrates else None,
            "garbage collector": self.garbage,
            "quota controller": self.quotas,
            "policy type checks": self.policies,
            "flow schemas": self.flow_schemas,
            "storage protection": self.storage_protection,
            "disruption budgets": self.disruption,
            "mirrored endpoints": self.endpoint_mirror,
            "service ranges": self.service_ranges,
            "event expiry": self.expiry,
            "conversion ahead of reads": self.prefetch,
            "default roles": self.roles,
            "leadership": self.leadership,
        }
        return [
            Part(name, each.start, each.stop) for name, each in named.items() if each is not None
        ]

    def custom_resource_parts(self) -> list[Part]:
        """The parts of a server whose home is another cluster: garbage collection, namespaces,
        quotas and CRDs are the controllers' of that cluster."""
        chosen: dict[str, Startable | None] = {
            "usage counts": self.usage,
            "conversion ahead of reads": self.prefetch,
            "leadership": self.leadership,
        }
        return [
            Part(name, each.start, each.stop) for name, each in chosen.items() if each is not None
        ]

    def read_only_parts(self) -> list[Part]:
        """The parts of a read-only server: no controller writes; stored usage counts are shown."""
        return [Part("usage counts", self.usage.load)]


def make_controllers(
    loaded: LoadedSettings,
    context: Context,
    catalog: Catalog,
    census: ServerCensus,
    usage: UsageRecorder,
) -> Controllers:
    settings, store = loaded.settings, context.backend.store
    leases = catalog.builtin("coordination.k8s.io", "leases")
    leadership = Leadership(
        context,
        leases,
        f"instar-{context.new_uid()}",
        company=store_sharing(store),
    )
    manager = ManagerLease(context, leases, followed=settings.yields_to_manager)
    duty = YieldingLeadership(leadership, manager)
    on, namespaces = settings.controllers, catalog.builtin("", "namespaces")
    collects = settings.collect_garbage and names.GARBAGE in on
    prefetches = settings.convert_ahead and settings.conversion_cache
    crds = catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
    migrations = catalog.builtin(MIGRATION_GROUP, MIGRATIONS)
    has_roles = RBAC in loaded.authorization
    return Controllers(
        crds=CrdController(context, catalog, crds),
        initial_namespaces=InitialNamespaces(context, namespaces),
        namespaces=(
            NamespaceController(context, catalog, namespaces, manager)
            if names.NAMESPACES in on
            else None
        ),
        usage=UsageKeeper(usage, store, context.supervision),
        migrations=MigrationController(context, catalog, census, migrations),
        migrates=names.MIGRATIONS in on,
        garbage=GarbageCollector(context, catalog, duty) if collects else None,
        quotas=(
            QuotaController(context, catalog, leadership, manager, recounts=names.QUOTAS in on)
            if on
            else None
        ),
        policies=(PolicyController(context, catalog, duty) if names.POLICY_STATUS in on else None),
        flow_schemas=FlowSchemaController(context, catalog, leadership),
        storage_protection=StorageProtection(context, catalog, duty, on),
        disruption=(
            DisruptionController(context, catalog, duty) if names.DISRUPTION in on else None
        ),
        endpoint_mirror=(
            EndpointMirror(context, catalog, duty) if names.ENDPOINT_MIRROR in on else None
        ),
        service_ranges=(
            ServiceRangeController(context, catalog, duty) if names.SERVICE_RANGES in on else None
        ),
        expiry=EventExpiry(context, catalog.builtin("", "events"), leadership),
        prefetch=ConversionPrefetch(catalog, context.supervision) if prefetches else None,
        roles=_roles(context, catalog, duty, on) if has_roles else None,
        leadership=leadership,
        manager=manager,
        bootstrap=(
            _bootstrap(context, catalog, leadership, manager, on)
            if settings.bootstrap_objects
            else None
        ),
    )


def _roles(context: Context, catalog: Catalog, duty: Duty, on: frozenset[str]) -> RoleController:
    return RoleController(context, catalog, duty, aggregates=names.ROLE_AGGREGATION in on)


def _bootstrap(
    context: Context,
    catalog: Catalog,
    leadership: Leadership,
    manager: ManagerLease,
    on: frozenset[str],
) -> BootstrapController:
    return BootstrapController(
        context,
        catalog,
        leadership,
        manager,
        accounts=names.ACCOUNTS in on,
        authorities=names.ROOT_CA in on,
    )


def store_sharing(store: Store) -> StoreSharing:
    """Which other processes write to the store."""
    if isinstance(store, RevisionTracker):
        return StoreSharing.LENDER
    return StoreSharing.ALONE if isinstance(store, Local) else StoreSharing.EQUALS
