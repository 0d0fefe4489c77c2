"""Builds a ``Serving`` (versions, schemas, converter and strategy of a resource) for every built-in
resource, from the data tables in ``kube/facts/``.

Called by ``server/lifecycle/composition.py`` at start. A new kind is a new row of these tables;
special behaviour is a strategy class, imported when the kind is first used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.api.crd import (
    ConversionSpec,
    Crd,
    CrdNames,
    CrdSubresource,
    CrdVersion,
    ScalePaths,
    Selectable,
)
from instar.kube.api.names import GroupVersionKind
from instar.kube.facts.resources import ResourceFacts, resources
from instar.kube.facts.types import schema_of
from instar.kube.openapi.builtin_crd import CRD_V1BETA1
from instar.kube.openapi.builtin_schemas import STORAGE_VERSION_MIGRATION
from instar.server.registry.kinds.builtin import BuiltinStrategy
from instar.server.registry.kinds.crds import CrdConverter
from instar.server.registry.kinds.events import CORE, SECOND, EventConverter, SecondEventStrategy
from instar.server.registry.kinds.migrations import GROUP as MIGRATION_GROUP
from instar.server.registry.kinds.migrations import PLURAL as MIGRATIONS
from instar.server.registry.kinds.migrations import MigrationPrinter, MigrationStrategy
from instar.server.registry.kinds.printing.printer import printer_for
from instar.server.registry.kinds.strategy_flags import STRATEGY_FLAGS
from instar.server.registry.kinds.strategy_table import RULES
from instar.server.registry.resources.columns import TablePrinter
from instar.server.registry.resources.serving import Serving, build_serving
from instar.server.registry.resources.strategy import Strategy
from instar.wire.conversion.caching import SharedConverter
from instar.wire.conversion.converter import NoneConverter, VersionConverter
from instar.wire.storage.keys import collection_prefix

ExtendPrinter = Callable[[TablePrinter], TablePrinter]
_STABLE = re.compile(r"v[0-9]+")
_CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
_EVENTS, _SECOND_EVENTS = ("", "events"), ("events.k8s.io", "events")
_CONVERTERS = {
    ("autoscaling", "horizontalpodautoscalers"): "autoscaling_versions:AutoscalerConverter",
    **{
        ("resource.k8s.io", plural): "device_versions:DeviceConverter"
        for plural in ("resourceclaims", "resourceclaimtemplates", "resourceslices")
    },
}
"""Converters of kinds with differing versions: ``module:Class``."""

_DEPRECATED = {
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "endpoints"): (
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    ),
}
"""Warning for requests of the resource."""
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SELECTABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "namespaces"): (".status.phase",),
    ("", "secrets"): (".type",),
    ("", "pods"): (
        ".spec.nodeName",
        ".spec.restartPolicy",
        ".spec.schedulerName",
        ".spec.serviceAccountName",
        ".status.phase",
        ".status.podIP",
        ".status.nominatedNodeName",
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): (".spec.signerName",),
    ("resource.k8s.io", "resourceslices"): (".spec.nodeName", ".spec.driver"),
    ("", "services"): (".spec.clusterIP", ".spec.type"),
    ("", "events"): (
        *(f".involvedObject.{name}" for name in _REFERENCE),
        ".reason",
        ".reportingComponent",
        ".type",
    ),
    ("events.k8s.io", "events"): (
        *(f".regarding.{name}" for name in _REFERENCE),
        ".reason",
        ".reportingController",
        ".type",
    ),
}
"""Paths that field selectors may name, like a CRD's ``selectableFields``."""
_FURTHER: Mapping[tuple[str, str], Mapping[str, Selectable]] = {
    ("", "pods"): {
        "spec.hostNetwork": Selectable(("spec", "hostNetwork"), "false"),
        "status.podIPs": Selectable(("status", "podIPs")),
    },
    ("", "nodes"): {"spec.unschedulable": Selectable(("spec", "unschedulable"), "false")},
    ("", "replicationcontrollers"): {"status.replicas": Selectable(("status", "replicas"), "0")},
    ("", "events"): {
        "source": Selectable(("source", "component"), instead=("reportingComponent",)),
    },
    ("batch", "jobs"): {"status.successful": Selectable(("status", "succeeded"), "0")},
}


class GroupVersionName(NamedTuple):
    group: str
    version: str


def known_versions() -> frozenset[GroupVersionName]:
    """Group versions of the built-in kinds that are served or can be."""
    return frozenset(GroupVersionName(facts.group, facts.version) for facts in resources())


def default_versions() -> frozenset[GroupVersionName]:
    """Group versions that are served unless a flag says otherwise: as upstream, the stable ones."""
    return frozenset(each for each in known_versions() if _STABLE.fullmatch(each.version))


def builtin_servings(
    crd_strategy: Strategy,
    crds_stored_as: str = "v1",
    show_crds: ExtendPrinter | None = None,
    served: frozenset[GroupVersionName] | None = None,
) -> list[Serving]:
    """``crds_stored_as``: beside a kube-apiserver CRDs lie in the form it keeps them in.
    ``show_crds`` adds columns to their table. ``served``: other versions than the default ones."""
    versions = default_versions() if served is None else served
    return [*_from_facts(crd_strategy, crds_stored_as, show_crds, versions), _migrations()]


def _from_facts(
    crd_strategy: Strategy,
    crds_stored_as: str,
    show_crds: ExtendPrinter | None,
    served: frozenset[GroupVersionName],
) -> Iterator[Serving]:
    found: dict[tuple[str, str], list[ResourceFacts]] = {}
    for facts in resources():
        if (facts.group, facts.version) in served:
            found.setdefault((facts.group, facts.plural), []).append(facts)
    for place, versions in found.items():
        if place == _CRDS:
            yield crd_serving(crd_strategy, crds_stored_as, show_crds)
        elif place == _SECOND_EVENTS:
            yield _second_events(versions)
        elif place == _EVENTS and _SECOND_EVENTS in found:
            yield _core_events(versions)
        else:
            yield _serving(place, versions)


def _serving(place: tuple[str, str], versions: list[ResourceFacts]) -> Serving:
    return build_serving(
        _describe(place, versions),
        converter=SharedConverter(_converter(place)),
        strategy=partial(_strategy, place),
        compile_rules=lambda _: None,
        verbs=versions[0].verbs,
        builtin=True,
        printer=partial(printer_for, versions[0]),
    )


class _LateConverter:
    """A converter that is imported when the first object is converted."""

    def __init__(self, named: str) -> None:
        self._named = named
        self._own: VersionConverter | None = None

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        if self._own is None:
            module, _, name = self._named.partition(":")
            self._own = getattr(import_module(f"instar.server.registry.kinds.{module}"), name)()
        return await self._own.convert(objects, api_version)


def _converter(place: tuple[str, str]) -> VersionConverter:
    named = _CONVERTERS.get(place)
    return NoneConverter() if named is None else _LateConverter(named)


def _strategy(place: tuple[str, str]) -> Strategy:
    """Return the strategy of a kind, imported on first use."""
    group, plural = place
    known = RULES.get(group, {}).get(plural, "builtin:BuiltinStrategy")
    module, _, name = known.partition(":")
    found: type[BuiltinStrategy] = getattr(
        import_module(f"instar.server.registry.kinds.{module}"), name
    )
    strategy = found()
    for flag, places in STRATEGY_FLAGS.items():
        if place in places:
            setattr(strategy, flag, True)
    return strategy


def _core_events(versions: list[ResourceFacts]) -> Serving:
    """Serve the core group's events, which rules of admission may name by the other group, too."""
    crd = _describe(_EVENTS, versions)
    schema = _Schema(SECOND, "Event")
    other = CrdVersion(name="second", served=False, storage=False, schema=schema)
    return build_serving(
        replace(crd, versions=(*crd.versions, other)),
        converter=SharedConverter(EventConverter()),
        strategy=partial(_strategy, _EVENTS),
        compile_rules=lambda _: None,
        verbs=versions[0].verbs,
        builtin=True,
        printer=partial(printer_for, versions[0]),
        foreign={"second": SECOND},
    )


def _second_events(versions: list[ResourceFacts]) -> Serving:
    """Serve events.k8s.io: the core group's events under other field names, stored as core."""
    crd = _describe(_SECOND_EVENTS, versions)
    stored = CrdVersion(name="core", served=False, storage=True, schema=_Schema(CORE, "Event"))
    shown = (replace(crd.versions[0], storage=False), stored)
    return build_serving(
        replace(crd, versions=shown, stored_versions=("core",)),
        converter=SharedConverter(EventConverter()),
        strategy=SecondEventStrategy,
        compile_rules=lambda _: None,
        verbs=versions[0].verbs,
        builtin=True,
        printer=partial(printer_for, versions[0]),
        stored_in=collection_prefix("", "events"),
        foreign={"core": CORE},
    )


def crd_serving(
    strategy: Strategy, stored_as: str = "v1", show: ExtendPrinter | None = None
) -> Serving:
    """CustomResourceDefinitions themselves: v1 and v1beta1 are views of the same."""
    [facts] = [item for item in resources() if (item.group, item.plural) == _CRDS]
    crd = _describe(_CRDS, [facts])
    [v1] = crd.versions
    versions = (
        replace(v1, storage=stored_as == "v1"),
        replace(v1, name="v1beta1", storage=stored_as == "v1beta1", schema=CRD_V1BETA1),
    )

    def printer() -> TablePrinter:
        plain = printer_for(facts)
        return plain if show is None else show(plain)

    return build_serving(
        replace(crd, versions=versions, stored_versions=(stored_as,)),
        converter=SharedConverter(CrdConverter()),
        strategy=lambda: strategy,
        compile_rules=lambda _: None,
        builtin=True,
        printer=printer,
    )


def _migrations() -> Serving:
    """Serve StorageVersionMigration, of a group that 1.36 does not serve by default."""
    kind = "StorageVersionMigration"
    names = CrdNames(plural=MIGRATIONS, singular=kind.lower(), kind=kind, list_kind=f"{kind}List")
    versions = tuple(
        CrdVersion(
            name=name,
            served=True,
            storage=name == "v1beta1",
            schema=STORAGE_VERSION_MIGRATION,
            has_status=True,
        )
        for name in ("v1beta1", "v1")
    )
    return build_serving(
        _crd(MIGRATION_GROUP, names, versions, namespaced=False),
        converter=SharedConverter(NoneConverter()),
        strategy=MigrationStrategy,
        compile_rules=lambda _: None,
        builtin=True,
        printer=MigrationPrinter,
    )


def _describe(place: tuple[str, str], versions: list[ResourceFacts]) -> Crd:
    facts = versions[0]
    names = CrdNames(
        plural=facts.plural,
        singular=facts.singular,
        kind=facts.kind,
        list_kind=f"{facts.kind}List",
        short_names=facts.short_names,
        categories=facts.categories,
    )
    described = tuple(_version(place, item, stored=item is facts) for item in versions)
    return _crd(facts.group, names, described, namespaced=facts.namespaced)


def _crd(group: str, names: CrdNames, versions: tuple[CrdVersion, ...], *, namespaced: bool) -> Crd:
    return Crd(
        name=f"{names.plural}.{group}",
        uid="",
        generation=1,
        group=group,
        namespaced=namespaced,
        names=names,
        accepted=names,
        versions=versions,
        conversion=ConversionSpec(),
        preserve_unknown=False,
        stored_versions=tuple(version.name for version in versions if version.storage),
        conditions={"Established": {"status": "True"}, "NamesAccepted": {"status": "True"}},
        deleting=False,
    )


def _version(place: tuple[str, str], facts: ResourceFacts, *, stored: bool) -> CrdVersion:
    own = (facts.group, facts.version, facts.kind)
    further = tuple(
        CrdSubresource(
            part.name,
            part.verbs,
            None
            if (part.group, part.version, part.kind) == own
            else GroupVersionKind(part.group, part.version, part.kind),
        )
        for part in facts.subresources
        if part.name not in ("status", "scale")
    )
    scaled = any(part.name == "scale" for part in facts.subresources)
    return CrdVersion(
        name=facts.version,
        served=True,
        storage=stored,
        deprecated=place in _DEPRECATED,
        deprecation_warning=_DEPRECATED.get(place),
        schema=_Schema(facts.api_version, facts.kind),
        has_status=any(part.name == "status" for part in facts.subresources),
        selectable_fields=_SELECTABLE.get(place, ()),
        further_selectable=_FURTHER.get(place, {}),
        scale=_scale(facts) if scaled else None,
        further=further,
    )


def _scale(facts: ResourceFacts) -> ScalePaths:
    form = "labels" if facts.kind == "ReplicationController" else "selector"
    return ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector", form)


class _Schema(Mapping[str, Any]):
    """A kind's schema, loaded on first access: most kinds are never used."""

    def __init__(self, api_version: str, kind: str) -> None:
        self._type = (api_version, kind)
        self._read: Mapping[str, Any] | None = None

    @property
    def _schema(self) -> Mapping[str, Any]:
        if self._read is None:
            self._read = schema_of(*self._type) or {"type": "object"}
        return self._read

    def __getitem__(self, name: str) -> Any:
        return self._schema[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema)

    def __len__(self) -> int:
        return len(self._schema)
