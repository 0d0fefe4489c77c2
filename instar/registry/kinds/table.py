"""The resources around custom resources that clients need, as a table: one line each.

They are served by the same engine, described by the same ``Crd`` values; only what truly differs
is a ``Strategy`` of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from instar.api.crd import Column, Conversion, Crd, CrdVersion, Names, Subresource
from instar.conversion.converter import NoneConverter
from instar.conversion.shared import SharedConverter
from instar.openapi.builtin_schemas import SCHEMAS
from instar.registry.kinds import columns as columns
from instar.registry.kinds.core import (
    ConfigMapStrategy,
    CoreStrategy,
    EphemeralStrategy,
    LooseNameStrategy,
    NamespaceStrategy,
    SecondEventStrategy,
    SecretStrategy,
    ServiceStrategy,
)
from instar.registry.kinds.crds import CrdConverter, CrdStrategy
from instar.registry.kinds.events import CORE, EventConverter
from instar.registry.kinds.migrations import MigrationStrategy
from instar.registry.resources.serving import Serving, build_serving
from instar.registry.resources.strategy import Strategy
from instar.storage.keys import collection_prefix

CREATE_ONLY = ("create",)


@dataclass(frozen=True, slots=True)
class Builtin:
    """One line of the table."""

    group: str
    versions: tuple[str, ...]
    """The first is the stored one."""
    plural: str
    kind: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    strategy: type[Strategy] = CoreStrategy
    has_status: bool = False
    verbs: tuple[str, ...] | None = None
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()
    """Paths that field selectors may name, as ``selectableFields`` of a CRD has them."""
    schema: str = ""
    """Key in ``SCHEMAS`` when it is not the kind."""
    further: tuple[Subresource, ...] = ()
    """Beside status and scale."""


_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

TABLE = (
    Builtin(
        "",
        ("v1",),
        "namespaces",
        "Namespace",
        ("ns",),
        namespaced=False,
        strategy=NamespaceStrategy,
        has_status=True,
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        columns=columns.NAMESPACE,
        selectable=(".status.phase",),
        further=(Subresource("finalize", verbs=("update",)),),
    ),
    Builtin(
        "",
        ("v1",),
        "configmaps",
        "ConfigMap",
        ("cm",),
        strategy=ConfigMapStrategy,
        columns=columns.CONFIG_MAP,
    ),
    Builtin(
        "",
        ("v1",),
        "secrets",
        "Secret",
        strategy=SecretStrategy,
        columns=columns.SECRET,
        selectable=(".type",),
    ),
    Builtin(
        "",
        ("v1",),
        "services",
        "Service",
        ("svc",),
        strategy=ServiceStrategy,
        has_status=True,
        categories=("all",),
        columns=columns.SERVICE,
        selectable=(".spec.clusterIP", ".spec.type"),
    ),
    Builtin(
        "",
        ("v1",),
        "serviceaccounts",
        "ServiceAccount",
        ("sa",),
        columns=columns.SERVICE_ACCOUNT,
    ),
    Builtin(
        "",
        ("v1",),
        "events",
        "Event",
        ("ev",),
        strategy=LooseNameStrategy,
        columns=columns.EVENT,
        selectable=(
            *(f".involvedObject.{name}" for name in _REFERENCE),
            ".reason",
            ".reportingComponent",
            ".type",
        ),
    ),
    Builtin(
        "coordination.k8s.io",
        ("v1",),
        "leases",
        "Lease",
        columns=columns.LEASE,
    ),
    Builtin(
        "storagemigration.k8s.io",
        ("v1beta1", "v1"),
        "storageversionmigrations",
        "StorageVersionMigration",
        namespaced=False,
        strategy=MigrationStrategy,
        has_status=True,
    ),
    *(
        Builtin(
            "authorization.k8s.io",
            ("v1",),
            kind.lower() + "s",
            kind,
            namespaced=False,
            strategy=EphemeralStrategy,
            verbs=CREATE_ONLY,
        )
        for kind in ("SelfSubjectAccessReview", "SelfSubjectRulesReview")
    ),
    *(
        Builtin(
            "authentication.k8s.io",
            ("v1",),
            kind.lower() + "s",
            kind,
            namespaced=False,
            strategy=EphemeralStrategy,
            verbs=CREATE_ONLY,
        )
        for kind in ("SelfSubjectReview", "TokenReview")
    ),
)


def builtin_servings(crd_strategy: CrdStrategy) -> list[Serving]:
    return [*(_serving(line) for line in TABLE), _event_serving(), crd_serving(crd_strategy)]


def _event_serving() -> Serving:
    """events.k8s.io: the core group's events under other names, not served in that form here."""
    line = Builtin(
        "events.k8s.io",
        ("v1",),
        "events",
        "Event",
        ("ev",),
        columns=columns.EVENT,
        schema="Event.events.k8s.io",
    )
    crd = _describe(line)
    stored = CrdVersion(name="core", served=False, storage=True, schema=SCHEMAS["Event"])
    versions = (replace(crd.versions[0], storage=False), stored)
    return build_serving(
        replace(crd, versions=versions, stored_versions=("core",)),
        converter=SharedConverter(EventConverter()),
        strategy=SecondEventStrategy(),
        compile_rules=lambda _: None,
        builtin=True,
        stored_in=collection_prefix("", "events"),
        foreign={"core": CORE},
    )


def crd_serving(strategy: CrdStrategy) -> Serving:
    """CustomResourceDefinitions themselves: v1 is stored, v1beta1 a view of the same."""
    line = Builtin(
        "apiextensions.k8s.io",
        ("v1", "v1beta1"),
        "customresourcedefinitions",
        "CustomResourceDefinition",
        ("crd", "crds"),
        namespaced=False,
        has_status=True,
        categories=("api-extensions",),
        columns=columns.CRD,
    )
    return build_serving(
        _describe(line),
        converter=SharedConverter(CrdConverter()),
        strategy=strategy,
        compile_rules=lambda _: None,
        builtin=True,
    )


def _serving(line: Builtin) -> Serving:
    return build_serving(
        _describe(line),
        converter=SharedConverter(NoneConverter()),
        strategy=line.strategy(),
        compile_rules=lambda _: None,
        verbs=line.verbs,
        builtin=True,
    )


def _describe(line: Builtin) -> Crd:
    names = Names(
        plural=line.plural,
        singular=line.kind.lower(),
        kind=line.kind,
        list_kind=line.kind + "List",
        short_names=line.short_names,
        categories=line.categories,
    )
    return Crd(
        name=f"{line.plural}.{line.group}",
        uid="",
        generation=1,
        group=line.group,
        namespaced=line.namespaced,
        names=names,
        accepted=names,
        versions=tuple(_version(line, name) for name in line.versions),
        conversion=Conversion(),
        preserve_unknown=False,
        stored_versions=line.versions[:1],
        conditions={"Established": {"status": "True"}, "NamesAccepted": {"status": "True"}},
        finalizers=(),
        annotations={},
        deleting=False,
    )


def _version(line: Builtin, name: str) -> CrdVersion:
    key = line.schema or line.kind
    return CrdVersion(
        name=name,
        served=True,
        storage=name == line.versions[0],
        schema=SCHEMAS.get(f"{key}/{name}") or SCHEMAS.get(key),
        has_status=line.has_status,
        columns=line.columns,
        selectable_fields=line.selectable,
        further=line.further,
    )
