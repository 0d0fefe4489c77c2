"""How a resource is served: its versions with compiled schemas, its converter and its strategy.

The catalog builds a ``Serving`` per CRD state and replaces it when the CRD changes; a
``VersionServing`` is its part for one version. Compiled schemas, rules and printers are made on
first use, so that accepting a CRD stays cheap, and are evicted when rarely used
(``schema_eviction.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from instar.base import limits
from instar.base.fast_dataclass import dataclass
from instar.kube.api.crd import Crd, CrdVersion, Selectable
from instar.kube.apply.managers import ignored_fields
from instar.kube.apply.ownership_schema import TypedSchema
from instar.kube.apply.ownership_schema import compile_schema as compile_typed
from instar.kube.crds.deprecation import deprecation_warning
from instar.kube.schema.clean_cache import text_size
from instar.kube.schema.compiled import CompiledSchema, compile_schema
from instar.kube.schema.pipeline import SchemaPipeline
from instar.kube.schema.rule_engine import Program, RuleCompiler
from instar.server.registry.resources.columns import TablePrinter
from instar.server.registry.resources.schema_eviction import COMPILED_SCHEMAS
from instar.server.registry.resources.strategy import Strategy
from instar.wire.conversion.caching import SharedConverter
from instar.wire.storage.keys import collection_prefix

T = TypeVar("T")
_RULES_WEIGHT = 4
"""Validating an object with CEL rules costs about as much as one without that is larger by this."""
_COMPILED_PARTS = ("compiled", "pipeline", "typed")
MakePrinter = Callable[[], TablePrinter]
"""Called for the first Table response."""


class VersionServing:
    """One version of a resource: its compiled schema, columns and constant response bytes."""

    def __init__(
        self,
        crd: Crd,
        version: CrdVersion,
        compile_rules: RuleCompiler,
        api_version: str = "",
        *,
        builtin: bool = False,
        make_printer: MakePrinter | None = None,
    ) -> None:
        """Pass ``api_version`` only where the version belongs to another group."""
        self.name = version.name
        self.definition = version
        own = f"{crd.group}/{version.name}" if crd.group else version.name
        self.api_version = api_version or own
        self.kind = crd.names.kind
        self.list_kind = crd.names.list_kind
        self.served = version.served
        self.has_status = version.has_status
        self.deprecation = deprecation_warning(crd, version.name)
        self.builtin = builtin
        self.opening = f'{{"apiVersion":"{self.api_version}"'.encode()
        self.list_opening = f'{{"apiVersion":"{self.api_version}","items":['.encode()
        self.list_closing = f'],"kind":"{self.list_kind}","metadata":{{'.encode()
        self._preserve_unknown = crd.preserve_unknown
        self._compile_rules = compile_rules
        self._make_printer = make_printer
        self._parked: dict[str, Any] = {}
        self.judging_weight: int | None = None
        """How often validation looks at each value, about; None until an object was validated,
        because the schema may have to be compiled first."""

    @cached_property
    def compiled(self) -> CompiledSchema:
        return self._part("compiled", self._compile)

    def _compile(self) -> CompiledSchema:
        return compile_schema(self.definition.schema, preserve_unknown=self._preserve_unknown)

    @cached_property
    def pipeline(self) -> SchemaPipeline:
        return self._part("pipeline", self._make_pipeline)

    def _make_pipeline(self) -> SchemaPipeline:
        return SchemaPipeline(
            self.compiled,
            api_version=self.api_version,
            kind=self.kind,
            has_status=self.has_status,
            scale=self.definition.scale,
            compile_rules=self._compile_rules,
        )

    def _part(self, name: str, make: Callable[[], T]) -> T:
        """Return a compiled part, taken back from parking or made now. It is counted after it is
        stored, because making it may take long and the budget drops holders without parts."""
        parked, self._parked = self._parked, {}
        self.__dict__.update(parked)
        found: T = parked[name] if name in parked else make()
        self.__dict__[name] = found
        if not self.builtin:
            COMPILED_SCHEMAS.keep(self, self._weight)
        return found

    @cached_property
    def _weight(self) -> int:
        schema = self.definition.schema
        return 0 if schema is None else text_size(schema)

    def park(self) -> bool:
        """Park the compiled parts. Return whether there were any."""
        found = {name: self.__dict__.pop(name) for name in _COMPILED_PARTS if name in self.__dict__}
        self._parked = {**self._parked, **found}
        self.judging_weight = None
        return bool(found)

    def drop_parked(self) -> None:
        self._parked = {}

    @property
    def rules(self) -> Program | None:
        return self.pipeline.rules

    def check_cost(self, size: int) -> int:
        """Return the cost of validating an object of ``size`` bytes, for ``offload.run``: CEL
        rules, and schemas that look at each value many times, are more work than the size tells.
        The first object has the schema compiled, which is costly in any case."""
        weight = 1 if self.builtin else self.judging_weight
        if weight is None:
            return max(size, limits.LOOP_BYTES + 1)
        return size * weight * (1 if self.rules is None else _RULES_WEIGHT)

    def read_cost(self, size: int) -> int:
        """Return the cost of decoding an object of ``size`` bytes, for ``offload.run``."""
        known = self.builtin or self.judging_weight is not None
        return size if known else max(size, limits.LOOP_BYTES + 1)

    def learn_judging_weight(self) -> None:
        """Compute ``judging_weight``, as part of the segment that validates."""
        self.judging_weight = 1 if self.builtin else self.compiled.learn_judging_weight()

    @cached_property
    def printer(self) -> TablePrinter:
        if self._make_printer is not None:
            return self._make_printer()
        return TablePrinter(self.definition.columns)

    @cached_property
    def typed(self) -> TypedSchema:
        return self._part("typed", lambda: compile_typed(self.compiled.structural))

    @cached_property
    def selectable(self) -> Mapping[str, Selectable]:
        """The field selectors of this version, with the path that each reads."""
        paths = {
            path.lstrip("."): Selectable(tuple(path.lstrip(".").split(".")))
            for path in self.definition.selectable_fields
        }
        return {**paths, **self.definition.further_selectable}


@dataclass(frozen=True, eq=False)
class Serving:
    """How one resource is served by the current CRD. Immutable."""

    crd: Crd
    versions: Mapping[str, VersionServing]
    """Every version of ``spec.versions``, served or not: objects may be stored in any."""
    storage: VersionServing
    converter: SharedConverter
    make_strategy: Callable[[], Strategy]
    """Called once, for the first object."""
    verbs: tuple[str, ...] | None = None
    """The verbs of a built-in kind that has not all of them; None for custom resources."""
    builtin: bool = False
    stored_in: str = ""
    """The collection prefix, where the objects are those of another group."""

    @cached_property
    def mark(self) -> object:
        """Identifies this ``Serving`` in caches without keeping it alive."""
        return object()

    @cached_property
    def strategy(self) -> Strategy:
        return self.make_strategy()

    @cached_property
    def group(self) -> str:
        return self.crd.group

    @cached_property
    def plural(self) -> str:
        return self.crd.names.plural

    @cached_property
    def kind(self) -> str:
        return self.crd.names.kind

    @cached_property
    def namespaced(self) -> bool:
        return self.crd.namespaced

    @cached_property
    def prefix(self) -> str:
        if self.stored_in:
            return self.stored_in
        return collection_prefix(self.crd.group, self.crd.stored_plural)

    def served(self, version: str) -> VersionServing | None:
        found = self.versions.get(version)
        return found if found is not None and found.served else None

    def version_at(self, api_version: str) -> VersionServing:
        """Return the version of an apiVersion, which may be one of another group."""
        return next(each for each in self.versions.values() if each.api_version == api_version)

    @cached_property
    def converts_remotely(self) -> bool:
        """Whether a conversion may call a webhook, so that it can fail or be slow."""
        return self.crd.conversion.strategy == "Webhook" and not self.builtin

    def ignored_fields(
        self, version: VersionServing, subresource: str
    ) -> Mapping[str, frozenset[str]]:
        """Return the fields that an endpoint does not change, for field ownership."""
        key = (version.name, subresource)
        known = self._ignored.get(key)
        if known is None:
            has_status = {v.api_version: v.has_status for v in self.versions.values()}
            known = ignored_fields(subresource, version.api_version, has_status)
            self._ignored[key] = known
        return known

    @cached_property
    def _ignored(self) -> dict[tuple[str, str], Mapping[str, frozenset[str]]]:
        return {}

    def splices(self, stored: VersionServing, wanted: VersionServing) -> bool:
        """Return whether ``wanted`` differs from ``stored`` in ``apiVersion`` only."""
        key = (stored.name, wanted.name)
        known = self._splices.get(key)
        if known is None:
            known = (
                self.crd.conversion.strategy == "None"
                and not self.strategy.reshapes
                and stored.compiled.same_pruning(wanted.compiled)
            )
            self._splices[key] = known
        return known

    @cached_property
    def _splices(self) -> dict[tuple[str, str], bool]:
        return {}


def build_serving(
    crd: Crd,
    *,
    converter: SharedConverter,
    strategy: Callable[[], Strategy],
    compile_rules: RuleCompiler,
    verbs: tuple[str, ...] | None = None,
    builtin: bool = False,
    printer: MakePrinter | None = None,
    stored_in: str = "",
    foreign: Mapping[str, str] | None = None,
) -> Serving:
    """Build the ``Serving`` of a CRD or built-in kind. ``foreign``: apiVersions of versions that
    belong to another group, by name. ``printer``: for tables with other columns than the CRD's."""
    elsewhere = foreign or {}
    versions = {
        version.name: VersionServing(
            crd,
            version,
            compile_rules,
            elsewhere.get(version.name, ""),
            builtin=builtin,
            make_printer=printer,
        )
        for version in crd.versions
    }
    return Serving(
        crd=crd,
        versions=versions,
        storage=versions[crd.storage_version()],
        converter=converter,
        make_strategy=strategy,
        verbs=verbs,
        builtin=builtin,
        stored_in=stored_in,
    )
