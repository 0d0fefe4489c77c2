"""The composition root: which parts a server is made of, wired once, by keyword."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from instar.api.crd import Crd
from instar.conversion.factory import ConversionServices, shared_converter_for
from instar.conversion.metrics import PrometheusConversionMetrics
from instar.crds.documents import as_v1
from instar.fields import FieldError
from instar.metrics import Measured
from instar.registry.controllers.crds import CrdController
from instar.registry.controllers.migrations import MigrationController
from instar.registry.controllers.namespaces import NamespaceController, namespace_check
from instar.registry.insight.census import Census, StoredPrinter
from instar.registry.insight.usage import Usage, UsageKeeper
from instar.registry.kinds.crds import CrdStrategy, ReviewChange
from instar.registry.kinds.migrations import GROUP as MIGRATION_GROUP
from instar.registry.kinds.migrations import PLURAL as MIGRATIONS
from instar.registry.kinds.migrations import MigrationPrinter
from instar.registry.kinds.table import builtin_servings
from instar.registry.resources.catalog import Catalog
from instar.registry.resources.context import Context
from instar.registry.resources.serving import Serving, build_serving
from instar.registry.resources.strategy import Strategy
from instar.registry.stored.backend import Backend
from instar.registry.stored.entry import Entry
from instar.schema.rules import Program, RuleCompiler
from instar.schema.structural import Structural
from instar.server.app import App
from instar.server.auth import Authenticator, Authorizer, User
from instar.server.health import Health
from instar.server.insight import Insight
from instar.server.metrics import Metrics
from instar.storage.store import Store


@dataclass(frozen=True)
class Machinery:
    """Everything that runs behind the HTTP port."""

    app: App
    backend: Backend
    catalog: Catalog
    crds: CrdController
    namespaces: NamespaceController
    migrations: MigrationController
    usage: UsageKeeper
    conversion: ConversionServices

    async def start(self) -> None:
        """The backend must be started already."""
        self.catalog.follow(
            self.catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
        )
        await self.namespaces.start()
        self.crds.start()
        await self.usage.start()
        self.migrations.start()
        self.app.ready = True

    async def stop(self) -> None:
        await self.usage.stop()
        await self.migrations.stop()
        await self.crds.stop()
        await self.namespaces.stop()
        for resource in self.catalog.resources():
            resource.hub.end_all()
        await self.conversion.close()
        await self.backend.stop()


def build(
    store: Store,
    *,
    tokens: Mapping[str, User],
    authorizer: Authorizer,
    strict_namespaces: bool,
    request_timeout: float,
    review: ReviewChange | None = None,
    deny_breaking: bool = False,
    make_conversion: Callable[[Backend, PrometheusConversionMetrics], ConversionServices],
) -> Machinery:
    backend = Backend(store)
    conversion_metrics = PrometheusConversionMetrics()
    conversion = make_conversion(backend, conversion_metrics)
    check = namespace_check(backend, strict=strict_namespaces)
    context = Context(backend=backend, check_namespace=check)
    crd_strategy = CrdStrategy(check_rules_lazily, review=review, deny=deny_breaking)
    catalog = Catalog(
        backend,
        builtin_servings(crd_strategy),
        read_stored_crd,
        lambda crd: serving_for(crd, conversion, compile_rules_lazily),
    )
    crds = catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
    controller = CrdController(context, catalog, crds)
    crd_strategy.settle = controller.settled
    namespaces = NamespaceController(context, catalog, catalog.builtin("", "namespaces"))
    census, usage = Census(catalog), Usage()
    for version in crds.serving.versions.values():
        version.printer = StoredPrinter(version.printer, census)
    migrations = catalog.builtin(MIGRATION_GROUP, MIGRATIONS)
    for version in migrations.serving.versions.values():
        version.printer = MigrationPrinter()
    authenticator = Authenticator(tokens)
    metrics = Metrics()
    metrics.add(census.metric(), _stored_objects(backend), *conversion_metrics.all())
    app = App(
        context=context,
        catalog=catalog,
        authenticator=authenticator,
        authorizer=authorizer,
        health=Health({"storage": lambda: backend.trouble}),
        metrics=metrics,
        conversion_metrics=conversion_metrics,
        insight=Insight(census, usage),
        request_timeout=request_timeout,
    )
    return Machinery(
        app=app,
        backend=backend,
        catalog=catalog,
        crds=controller,
        namespaces=namespaces,
        migrations=MigrationController(context, catalog, census, migrations),
        usage=UsageKeeper(usage, store),
        conversion=conversion,
    )


def serving_for(crd: Crd, conversion: ConversionServices, compile_rules: RuleCompiler) -> Serving:
    return build_serving(
        crd,
        converter=shared_converter_for(crd, conversion),
        strategy=Strategy(),
        compile_rules=compile_rules,
    )


def read_stored_crd(entry: Entry) -> dict[str, Any]:
    """A stored CRD in v1 shape, whichever version it lies in."""
    obj = entry.decode()
    if obj.get("apiVersion", "").endswith("/v1"):
        return obj
    return as_v1(obj)


def compile_rules_lazily(root: Structural) -> Program | None:
    """CEL is imported when the first schema with a rule is: most servers start without one."""
    if not has_rules(root):
        return None
    from instar.schema.validations.evaluate import compile_rules

    return compile_rules(root)


def has_rules(node: Structural) -> bool:
    if node.rules:
        return True
    children: list[Structural] = [*node.properties.values()]
    if node.items is not None:
        children.append(node.items)
    if isinstance(node.additional, Structural):
        children.append(node.additional)
    return any(has_rules(child) for child in children)


def check_rules_lazily(
    root: Structural, path: str, known_rules: frozenset[str], per_expression_limit_waived: bool
) -> list[FieldError]:
    if not has_rules(root):
        return []
    # Only here: as above.
    from instar.schema.validations.check import check_rules
    from instar.schema.validations.evaluate import default_rule_errors

    found = check_rules(root, path, known_rules, per_expression_limit_waived)
    return found or default_rule_errors(root, path)


def _stored_objects(backend: Backend) -> Measured:
    def measure() -> Iterable[tuple[tuple[str], int]]:
        for collection in backend.cache.collections():
            yield (collection.prefix.rstrip("/"),), len(collection.entries)

    help = "Objects in the store, by collection."
    return Measured("apiserver_storage_objects", help, ("resource",), measure)
