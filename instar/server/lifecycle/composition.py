"""Composition root: makes every component of a server from the components that it uses.

``lifetime.py`` and ``embedded.py`` make one ``ServerComponents`` per server, from settings and a
store, and start its parts. What a component does is described in its own module.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any

from instar.base import offload
from instar.base.metrics import Measured
from instar.base.supervision import Supervision
from instar.kube.access.authorizers import Authorizers
from instar.kube.api.crd import Crd
from instar.kube.crds.documents import as_v1
from instar.kube.schema.cel_rules.lazy_engine import check_if_any, compile_if_any
from instar.server.access.authorization import RBAC
from instar.server.access.legacy_token_use import LegacyTokenUse
from instar.server.aggregation.aggregator import Aggregator
from instar.server.app import EVERY_ANSWER, App
from instar.server.endpoints.health import Check, Health
from instar.server.endpoints.insight import Insight
from instar.server.endpoints.metrics import Metrics
from instar.server.flow_control.configuration import Configuration
from instar.server.flow_control.flow_control import FlowControl
from instar.server.flow_control.followed_objects import FollowedFlowObjects
from instar.server.flow_control.work_estimate import WorkEstimate
from instar.server.identity.issuer import Issuer
from instar.server.identity.legacy_tokens import LegacyTokenMetrics
from instar.server.lifecycle.address_setup import service_addresses
from instar.server.lifecycle.admission_setup import Admissions
from instar.server.lifecycle.aggregation_setup import OwnAddress, make_aggregator, make_kubelets
from instar.server.lifecycle.controller_setup import Controllers, make_controllers, store_sharing
from instar.server.lifecycle.conversion_setup import conversion_services
from instar.server.lifecycle.homes import home_of
from instar.server.lifecycle.loaded_settings import LoadedSettings
from instar.server.lifecycle.parts import Part, background_task
from instar.server.lifecycle.start_hooks import follow_stored, start_hooks, stored_once
from instar.server.lifecycle.storage_start import first_read, last_read, maintenance_parts
from instar.server.lifecycle.watchdog import Watchdog
from instar.server.registry.admission.plugins.rbac_escalation import EscalationCheck
from instar.server.registry.controllers.controller_names import QUOTAS
from instar.server.registry.controllers.leadership import Leadership, StoreSharing
from instar.server.registry.controllers.namespaces import create_namespace
from instar.server.registry.insight.access import AccessRecord
from instar.server.registry.insight.census import ServerCensus, StoredPrinter
from instar.server.registry.insight.usage import UsageRecorder
from instar.server.registry.kinds.builtin_resources import builtin_servings
from instar.server.registry.kinds.crds import CrdStrategy
from instar.server.registry.resources.admission import AdmissionChain
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.serving import Serving, build_serving
from instar.server.registry.resources.strategy import Strategy
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.consistency import Consistency
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.packing.packer import Packer
from instar.server.registry.stored.rbac_policy import StoredPolicy
from instar.wire.conversion.factory import ConversionServices, shared_converter_for
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from instar.wire.storage.store import MeasuredStore, Store, unwrapped_store
from instar.wire.storage.value_reader import Values
from instar.wire.storage.workers.arena_reclaim import ArenaReadingStore
from instar.wire.webhooks.call_log import CallLog
from instar.wire.webhooks.https import ClientCertificate


class ServerComponents:
    """Everything that runs behind the HTTP port of one server.

    Each property makes its component on first access, from other properties; all components exist
    once ``app`` and ``controllers`` were read.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        store: Store,
        values: Values | None = None,
        proxy: ClientCertificate | None = None,
    ) -> None:
        """``values``: where cache entries read their bytes from. ``proxy``: the certificate made
        for calls of backends. Raises ``ValueError``."""
        self.loaded = loaded
        self._proxy_certificate = proxy
        self.own_address = OwnAddress()
        self.settings = loaded.settings
        self.supervision = Supervision()
        packer = Packer() if loaded.settings.pack_values == "auto" else None
        self.backend = Backend(store, values=values, loans=loaded.settings.loans, packer=packer)
        self.call_log = CallLog()
        self.usage = UsageRecorder()
        self.access_record = AccessRecord(of_several=loaded.settings.shared_port is not None)
        self.watchdog = Watchdog(self.supervision)
        self.consistency = Consistency(self.backend)
        self.home = home_of(loaded, self.backend, self.supervision)
        self.legacy_token_metrics = LegacyTokenMetrics()
        self.conversion_metrics = PrometheusConversionMetrics(self.call_log)
        self.app = self._make_app()

    # --- shared by requests and controllers -----------------------------------------------

    @cached_property
    def conversion(self) -> ConversionServices:
        return conversion_services(self.settings, self.backend, self.conversion_metrics)

    @cached_property
    def authorizer(self) -> Authorizers:
        return self.home.authorizer(self.access_record)

    @cached_property
    def admissions(self) -> Admissions:
        settings, images = self.settings, self.loaded.image_reviews
        return Admissions(
            self.backend,
            self.home.views,
            self.authorizer,
            self.conversion.transports,
            lambda group, kind: self.catalog.of_kind(group, kind),
            self._create_namespace,
            strict_namespaces=settings.strict_namespaces,
            local=settings.admissions,
            enabled=settings.admission_plugins,
            counts_quotas=QUOTAS in settings.controllers,
            configurations=self.loaded.plugins,
            image_reviews=None if images is None else images.post,
            calls=self.call_log,
        )

    async def _create_namespace(self, name: str) -> None:
        await create_namespace(self.context, self.catalog.builtin("", "namespaces"), name)

    @cached_property
    def context(self) -> Context:
        escalation = EscalationCheck(self.authorizer, StoredPolicy(self.backend))
        addresses = service_addresses(
            self.loaded, self.backend, lambda: (self.context, self.catalog)
        )
        return Context(
            backend=self.backend,
            authorizer=self.authorizer,
            admission=AdmissionChain([*self.admissions.plugins(), escalation], [addresses]),
            rescue_deletes=self.settings.rescue_deletes,
            watch_list=self.settings.watch_list,
            supervision=self.supervision,
        )

    @cached_property
    def catalog(self) -> Catalog:
        strategy = CrdStrategy(
            check_if_any,
            review=self.settings.review,
            deny=self.settings.deny_breaking,
            converted_here=self.conversion.in_process,
            after_write=lambda name: self.controllers.crds.wait_until_reconciled(name),
            store_new=lambda draft, crd: self.controllers.crds.store_new(draft, crd),
        )
        equals = store_sharing(self.backend.store) is StoreSharing.EQUALS
        builtin = builtin_servings(
            strategy,
            "v1beta1" if equals else "v1",
            lambda printer: StoredPrinter(printer, self.census),
            self.settings.versions,
        )
        return Catalog(
            self.backend,
            builtin,
            read_stored_crd,
            self._serving_for,
            self.home.backend_of,
            shows_builtins=self.home.serves_builtins,
        )

    def _serving_for(self, crd: Crd) -> Serving:
        return build_serving(
            crd,
            converter=shared_converter_for(crd, self.conversion),
            strategy=Strategy,
            compile_rules=compile_if_any,
        )

    @cached_property
    def census(self) -> ServerCensus:
        return ServerCensus(self.catalog)

    @cached_property
    def controllers(self) -> Controllers:
        return make_controllers(self.loaded, self.context, self.catalog, self.census, self.usage)

    @property
    def leadership(self) -> Leadership:
        return self.controllers.leadership

    @cached_property
    def aggregator(self) -> Aggregator | None:
        return make_aggregator(
            self.settings,
            self.context,
            self.catalog,
            leads=lambda: self.leadership.leads,
            certificate=self._proxy_certificate,
            own_address=self.own_address,
            every_answer=EVERY_ANSWER,
        )

    # --- requests -------------------------------------------------------------------------

    def _make_app(self) -> App:
        issuer: Issuer = self.loaded.identities.issuer(self.backend)
        return App(
            context=self.context,
            catalog=self.catalog,
            authenticator=self.loaded.identities.authenticator(
                issuer,
                self.home.token_authenticator(),
                self._token_use.note,
                self.legacy_token_metrics,
            ),
            issuer=issuer,
            health=self._health,
            metrics=self.metrics,
            conversion_metrics=self.conversion_metrics,
            insight=Insight(
                self.census,
                self.usage,
                self.access_record,
                self.backend,
                self.call_log,
                self.conversion.transports,
                self.controllers.migrations.document,
            ),
            kubelets=make_kubelets(self.settings.kubelets),
            request_timeout=self.settings.request_timeout,
            auditor=self.loaded.auditor,
            flow=self.flow,
            read_only=self.settings.read_only,
            cbor=self.settings.cbor,
            aggregator=self.aggregator,
            aggregated=not self.home.serves_builtins,
        )

    @cached_property
    def _token_use(self) -> LegacyTokenUse:
        secrets = self.catalog.builtin("", "secrets")
        return LegacyTokenUse(self.context, secrets, read_only=self.settings.read_only)

    @cached_property
    def flow(self) -> FlowControl | None:
        """Priority and fairness; None where the settings limit neither reads nor writes."""
        settings = self.settings
        seats = settings.reads_at_once + settings.writes_at_once
        if not seats:
            return None
        configuration = Configuration(FollowedFlowObjects(self.backend), seats)
        patience, estimate = settings.request_timeout / 4, WorkEstimate(self.catalog)
        return FlowControl(configuration, patience, estimate)

    @cached_property
    def _health(self) -> Health:
        return Health(self._checks(), self._start_hooks, self._still_reading)

    @cached_property
    def _start_hooks(self) -> dict[str, Check]:
        joins = isinstance(self.backend.store, ArenaReadingStore)  # the first process stored them
        creates = self.home.serves_builtins and not self.settings.read_only and not joins
        return start_hooks(
            lambda: self.catalog,
            self._still_reading,
            lambda: None if self.app.ready else "not finished",
            creates=creates,
            bootstraps=creates and self.settings.bootstrap_objects,
            roles=creates and RBAC in self.loaded.authorization,
            fair=self.flow is not None,
        )

    def _checks(self) -> dict[str, Check]:
        return {
            "etcd": lambda: self.backend.trouble,
            "cache-consistency": lambda: self.consistency.trouble,
            "background": self._background_trouble,
            **self.home.checks(),
            **self.loaded.checks(),
            **({} if self.aggregator is None else self.aggregator.checks()),
        }

    def _background_trouble(self) -> str | None:
        return self.supervision.trouble() or offload.trouble()

    def _still_reading(self) -> str | None:
        return "not finished" if self.backend.loading or self.catalog.loading else None

    @cached_property
    def metrics(self) -> Metrics:
        metrics, flow = Metrics(), self.flow
        metrics.add(*self._health.metrics())
        metrics.add(*self.watchdog.metrics(), self.consistency.checks, self.census.metric())
        metrics.add(*self.supervision.metrics(), *self.legacy_token_metrics.all())
        metrics.preparations.append(self.census.prepare)
        metrics.add(_stored_objects(self.backend), *self.conversion_metrics.all())
        metrics.add(*self.admissions.all_metrics(), *self.loaded.metrics(), *self.home.metrics())
        if flow is not None:
            metrics.add(*flow.metrics.all())
        if self.aggregator is not None:
            metrics.add(*self.aggregator.metrics())
        metrics.add(*(self.backend.packer.metrics() if self.backend.packer else ()))
        store = unwrapped_store(self.backend.store)
        if isinstance(store, MeasuredStore):
            metrics.add(*store.metrics())
        return metrics

    # --- start and stop -------------------------------------------------------------------

    def reading_parts(self) -> list[Part]:
        """Read the store into the watch cache. Reads of small collections are answered as soon as
        these are loaded, before the large ones are read."""
        backend = self.backend
        return [
            Part("conversion webhooks", stop=self.conversion.close),
            first_read(backend, self.loaded.encryption, self.settings.fill),
            Part("watchdog", self.watchdog.start, self.watchdog.stop),
            Part("home", self.home.start, self.home.stop),
            *self._aggregation_parts(),
            Part("catalog", self.begin, self.end_watches),
            last_read(backend),
        ]

    def _aggregation_parts(self) -> list[Part]:
        aggregator = self.aggregator
        if aggregator is None:
            return []
        self.leadership.on_elected(aggregator.look_at_all)
        return [
            Part("aggregated APIs", aggregator.start, aggregator.stop),
            background_task("backend connections", aggregator.backends.run, self.supervision),
        ]

    def background_parts(self) -> list[Part]:
        """Tasks that maintain the store and its cache; a server in memory needs none."""
        return [
            *maintenance_parts(self.settings, self.backend, self.supervision),
            *self.loaded.background_parts(self.supervision),
            background_task("cache consistency", self.consistency.run, self.supervision),
            *self._flow_parts(),
        ]

    def _flow_parts(self) -> list[Part]:
        if self.flow is None:
            return []
        return [background_task("flow control", self.flow.run, self.supervision)]

    def controller_parts(self) -> list[Part]:
        if self.settings.read_only:
            return self.controllers.read_only_parts()
        if not self.home.serves_builtins:
            starting = partial(self.home.start_controllers, self.catalog)
            return [*self.controllers.custom_resource_parts(), Part("home controllers", starting)]
        return self.controllers.parts()

    def readiness_part(self) -> Part:
        """Opens the application for writes and for large collections."""
        return Part("readiness", self.app.open)

    def start_hooks_part(self) -> Part:
        """Waits until ``/readyz`` is ok, so that a server that says it is ready is."""
        return Part("start hooks", lambda: stored_once(self._start_hooks.values()))

    async def begin(self) -> None:
        """Serve what has been read already; other requests wait for the rest."""
        follow_stored(self._start_hooks.values())
        self.app.reads = True
        await self.catalog.follow(
            self.catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
        )

    def end_watches(self) -> None:
        """Called when the server begins to stop."""
        self._health.stopping = True
        for resource in self.catalog.resources():
            resource.hub.end_all()


def read_stored_crd(entry: CacheEntry) -> dict[str, Any]:
    """A stored CRD in the shape of v1, whichever version it is stored in."""
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
