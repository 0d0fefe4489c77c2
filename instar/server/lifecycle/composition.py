"""The composition root: which parts a server is made of, wired once, by keyword."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from instar.base.fast_dataclass import dataclass
from instar.base.metrics import Measured, Metric
from instar.kube.access.authorizers import Authorizer
from instar.kube.api.crd import Crd
from instar.kube.crds.documents import as_v1
from instar.kube.schema.cel_rules.lazy_engine import check_if_any, compile_if_any
from instar.kube.schema.rule_engine import RuleCompiler
from instar.server.access.authorization import RBAC, authorizer_of
from instar.server.access.identities import Identities
from instar.server.app import App
from instar.server.endpoints.health import Check, Health
from instar.server.endpoints.insight import Insight
from instar.server.endpoints.metrics import Metrics
from instar.server.http.fair_queue import Flow
from instar.server.lifecycle.admission_setup import Admissions
from instar.server.lifecycle.watchdog import Watchdog
from instar.server.registry.admission.plugin_names import HERE
from instar.server.registry.admission.plugins.event_rate_limit import EventLimit
from instar.server.registry.admission.plugins.rbac_escalation import EscalationCheck
from instar.server.registry.admission.plugins.service_addresses import ServiceAddresses
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration
from instar.server.registry.controllers.bootstrap.controller import Furniture
from instar.server.registry.controllers.conversion_prefetch import AheadOfReaders
from instar.server.registry.controllers.crds import CrdController
from instar.server.registry.controllers.event_ttl import Expiry
from instar.server.registry.controllers.garbage.collector import GarbageCollector
from instar.server.registry.controllers.leadership import Company, Leadership
from instar.server.registry.controllers.migrations import MigrationController
from instar.server.registry.controllers.namespaces import NamespaceController
from instar.server.registry.controllers.policies import PolicyController
from instar.server.registry.controllers.quotas import QuotaController
from instar.server.registry.controllers.roles.controller import RoleKeeper
from instar.server.registry.insight.access import AccessRecord
from instar.server.registry.insight.census import ServerCensus, StoredPrinter
from instar.server.registry.insight.usage import UsageKeeper, UsageRecorder
from instar.server.registry.kinds.builtin_resources import builtin_servings
from instar.server.registry.kinds.crds import CrdStrategy, ReviewChange
from instar.server.registry.kinds.migrations import GROUP as MIGRATION_GROUP
from instar.server.registry.kinds.migrations import PLURAL as MIGRATIONS
from instar.server.registry.kinds.migrations import MigrationPrinter
from instar.server.registry.resources.admission import Chain
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.serving import Serving, build_serving
from instar.server.registry.resources.strategy import Strategy
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.consistency import Consistency
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.rbac_policy import StoredPolicy
from instar.wire.conversion.factory import ConversionServices, shared_converter_for
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from instar.wire.storage.store import Local, Near, Store
from instar.wire.storage.value_reader import Values
from instar.wire.storage.workers.arena_reclaim import Loans
from instar.wire.webhooks.call_log import CallLog

if TYPE_CHECKING:
    from instar.server.audit.auditor import Auditor


@dataclass(frozen=True)
class Extras:
    """What parts that few servers have add to the pages of all."""

    checks: Mapping[str, Check] = field(default_factory=dict)
    metrics: Sequence[Metric] = ()


NOTHING_MORE = Extras()


@dataclass(frozen=True)
class Machinery:
    """Everything that runs behind the HTTP port."""

    app: App
    backend: Backend
    catalog: Catalog
    crds: CrdController
    namespaces: NamespaceController
    migrations: MigrationController
    leadership: Leadership
    garbage: GarbageCollector | None
    furniture: Furniture | None
    roles: RoleKeeper | None
    quotas: QuotaController
    policies: PolicyController
    expiry: Expiry
    ahead: AheadOfReaders | None
    usage: UsageKeeper
    conversion: ConversionServices
    watchdog: Watchdog
    consistency: Consistency
    metrics: Metrics
    read_only: bool = False

    async def begin(self) -> None:
        """Serve what the backend has read already; the rest waits for ``start``."""
        self.watchdog.start()
        self.app.reads = True
        await self.catalog.follow(
            self.catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
        )

    async def start(self) -> None:
        """The backend must be started already."""
        if not self.app.reads:
            await self.begin()
        if self.read_only:
            await self.usage.load()
        else:
            await self._start_writers()
        self.app.open()

    async def _start_writers(self) -> None:
        """Whatever writes without being asked by a request."""
        await self.namespaces.start()
        self.crds.start()
        await self.usage.start()
        self.migrations.start()
        if self.garbage is not None:
            self.garbage.start()
        self.quotas.start()
        self.policies.start()
        self.expiry.start()
        if self.ahead is not None:
            self.ahead.start()
        if self.roles is not None:
            await self.roles.start()
        await self.leadership.start()

    async def stop(self) -> None:
        if self.furniture is not None:
            await self.furniture.stop()
        if self.roles is not None:
            await self.roles.stop()
        if self.ahead is not None:
            await self.ahead.stop()
        await self.quotas.stop()
        await self.policies.stop()
        await self.expiry.stop()
        await self.leadership.stop()
        if self.garbage is not None:
            await self.garbage.stop()
        await self.usage.stop()
        await self.migrations.stop()
        await self.crds.stop()
        await self.namespaces.stop()
        for resource in self.catalog.resources():
            resource.hub.end_all()
        await self.conversion.close()
        await self.backend.stop()
        self.watchdog.stop()


def build(
    store: Store,
    *,
    identities: Identities,
    authorization: tuple[str, ...],
    webhook_authorizer: Authorizer | None = None,
    of_several: bool = False,
    strict_namespaces: bool,
    request_timeout: float,
    collect_garbage: bool,
    service_network: IPv4Network,
    furnish: bool,
    rescue_deletes: bool,
    read_only: bool = False,
    convert_ahead: bool = False,
    review: ReviewChange | None = None,
    deny_breaking: bool = False,
    local_admissions: Sequence[LocalConfiguration] = (),
    admission_plugins: frozenset[str] = HERE,
    event_limits: Sequence[EventLimit] = (),
    extras: Extras = NOTHING_MORE,
    auditor: Auditor | None = None,
    flow: Flow | None = None,
    values: Values | None = None,
    loans: Loans | None = None,
    make_conversion: Callable[[Backend, PrometheusConversionMetrics], ConversionServices],
) -> Machinery:
    backend = Backend(store, values=values, loans=loans)
    calls = CallLog()
    conversion_metrics = PrometheusConversionMetrics(calls)
    conversion = make_conversion(backend, conversion_metrics)
    policy = StoredPolicy(backend)
    authorizer = authorizer_of(authorization, policy, webhook_authorizer)
    admissions = Admissions(
        backend,
        authorizer,
        conversion.transports,
        lambda group, kind: catalog.of_kind(group, kind),
        strict_namespaces=strict_namespaces,
        local=local_admissions,
        enabled=admission_plugins,
        event_limits=event_limits,
        calls=calls,
    )
    plugins = [*admissions.plugins(), EscalationCheck(authorizer, policy)]
    context = Context(
        backend=backend,
        authorizer=authorizer,
        admission=Chain(plugins, [ServiceAddresses(backend, service_network)]),
        rescue_deletes=rescue_deletes,
    )
    crd_strategy = CrdStrategy(
        check_if_any, review=review, deny=deny_breaking, converted_here=conversion.in_process
    )
    catalog = Catalog(
        backend,
        builtin_servings(crd_strategy, "v1beta1" if _company(store) is Company.EQUALS else "v1"),
        read_stored_crd,
        lambda crd: serving_for(crd, conversion, compile_if_any),
    )
    crds = catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
    controller = CrdController(context, catalog, crds)
    crd_strategy.after_write = controller.at_rest
    crd_strategy.store_new = controller.store_new
    namespaces = NamespaceController(context, catalog, catalog.builtin("", "namespaces"))
    census, usage = ServerCensus(catalog), UsageRecorder()
    for version in crds.serving.versions.values():
        version.printer = StoredPrinter(version.printer, census)
    migrations = catalog.builtin(MIGRATION_GROUP, MIGRATIONS)
    for version in migrations.serving.versions.values():
        version.printer = MigrationPrinter()
    migrating = MigrationController(context, catalog, census, migrations)
    leadership = Leadership(
        context,
        catalog.builtin("coordination.k8s.io", "leases"),
        f"instar-{context.new_uid()}",
        company=_company(store),
    )
    quotas = QuotaController(context, catalog, leadership)
    furniture = Furniture(context, catalog, leadership) if furnish else None
    garbage = GarbageCollector(context, catalog, leadership) if collect_garbage else None
    roles = RoleKeeper(context, catalog, leadership) if RBAC in authorization else None
    issuer = identities.issuer(backend)
    authorizer.recorder = access = AccessRecord(of_several=of_several)
    metrics, watchdog, consistency = Metrics(), Watchdog(), Consistency(backend)
    metrics.add(*watchdog.metrics(), consistency.checks, census.metric())
    metrics.preparations.append(census.prepare)
    metrics.add(_stored_objects(backend), *conversion_metrics.all())
    metrics.add(*admissions.all_metrics(), *extras.metrics)
    if flow is not None:
        metrics.add(*flow.metrics())
    app = App(
        context=context,
        catalog=catalog,
        authenticator=identities.authenticator(issuer),
        issuer=issuer,
        health=Health(
            {
                "etcd": lambda: backend.trouble,
                "cache-consistency": lambda: consistency.trouble,
                **extras.checks,
            },
            started=lambda: "not finished" if backend.loading or catalog.loading else None,
        ),
        metrics=metrics,
        conversion_metrics=conversion_metrics,
        insight=Insight(
            census, usage, access, backend, calls, conversion.transports, migrating.document
        ),
        request_timeout=request_timeout,
        auditor=auditor,
        flow=flow,
        read_only=read_only,
    )
    return Machinery(
        app=app,
        backend=backend,
        catalog=catalog,
        crds=controller,
        namespaces=namespaces,
        migrations=migrating,
        leadership=leadership,
        garbage=garbage,
        furniture=furniture,
        roles=roles,
        quotas=quotas,
        policies=PolicyController(context, catalog, leadership),
        ahead=AheadOfReaders(catalog) if convert_ahead else None,
        expiry=Expiry(context, catalog.builtin("", "events"), leadership),
        usage=UsageKeeper(usage, store),
        conversion=conversion,
        watchdog=watchdog,
        consistency=consistency,
        metrics=metrics,
        read_only=read_only,
    )


def _company(store: Store) -> Company:
    if isinstance(store, Near):
        return Company.LENDER
    return Company.ALONE if isinstance(store, Local) else Company.EQUALS


def serving_for(crd: Crd, conversion: ConversionServices, compile_rules: RuleCompiler) -> Serving:
    return build_serving(
        crd,
        converter=shared_converter_for(crd, conversion),
        strategy=Strategy,
        compile_rules=compile_rules,
    )


def read_stored_crd(entry: CacheEntry) -> dict[str, Any]:
    """A stored CRD in v1 shape, whichever version it lies in."""
    obj = entry.decode()
    if obj.get("apiVersion", "").endswith("/v1"):
        return obj
    return as_v1(obj)


def _stored_objects(backend: Backend) -> Measured:
    def measure() -> Iterable[tuple[tuple[str], int]]:
        for collection in backend.cache.collections():
            yield (collection.prefix.rstrip("/"),), len(collection.entries)

    help = "Objects in the store, by collection."
    return Measured("apiserver_storage_objects", help, ("resource",), measure)
