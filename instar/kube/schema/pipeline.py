"""The order of schema steps for every object that enters or leaves the server.

On write: root metadata, prune, drop nulls, embedded resources, defaults, then every check. On read:
the same steps in lenient mode; after a conversion the object is pruned again. The registry verbs,
the reviewer and ``instar check`` all call this module, so they all treat an object alike. The
callers handle field ownership and admission, which run between these steps, and built-in kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from instar.base.field_errors import NO_FIELD, FieldError, FieldErrorCode, FieldErrorType, invalid
from instar.base.json_values import Object, same_json
from instar.kube.api.crd import Crd, CrdVersion, ScalePaths
from instar.kube.schema.cel_rules.lazy_engine import compile_if_any
from instar.kube.schema.compiled import CompiledSchema, compile_schema
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.metadata.object_meta import (
    coerce_metadata,
    coerce_metadata_lenient,
    name_is_path_segment,
    validate_metadata,
    validate_metadata_update,
)
from instar.kube.schema.metadata.rules import (
    MetadataCheck,
    NameRule,
    finalizer_advice,
    name_is_subdomain,
    unqualified_errors,
)
from instar.kube.schema.rule_engine import Program, RuleCompiler
from instar.kube.schema.scale import scale_errors

Warn = Callable[[str], None]

STOPS_RULES = frozenset(
    {
        FieldErrorType.NOT_SUPPORTED,
        FieldErrorType.REQUIRED,
        FieldErrorType.TOO_LONG,
        FieldErrorType.TOO_MANY,
        FieldErrorType.TYPE_INVALID,
    }
)
"""After an error of these types a CEL rule could meet values of types that it excludes."""
RULES_SKIPPED = invalid(
    NO_FIELD,
    None,
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
    FieldErrorCode.RULES_SKIPPED,
)


def ignore_warning(text: str) -> None:
    """Drop a warning, for callers that do not report warnings."""


def decode_metadata(obj: Object, within: str = "") -> list[str]:
    """Coerce the root's metadata to ObjectMeta, in place; return its unknown paths.

    Raises ``MetaError``, with the message for a whole object of kind ``within`` if given.
    """
    obj["metadata"], unknown = coerce_metadata(obj.get("metadata"), within=within)
    return unknown


def take_in(compiled: CompiledSchema, obj: Object) -> list[str]:
    """Prune, drop nulls, coerce and default a client's value, in place; return the unknown paths.

    The root's metadata is not changed. Raises ``MetaError`` for an embedded resource that cannot be
    decoded.
    """
    unknown: list[str] = []
    if not compiled.is_tidy(obj):
        unknown += compiled.prune_reporting(obj)
        compiled.drop_nulls(obj)
        unknown += compiled.coerce_embedded(obj, lenient=False)
    compiled.default(obj)
    return unknown


def take_in_applied(compiled: CompiledSchema, obj: Object) -> None:
    """Like ``take_in`` for the result of an apply: nulls stay for validation to accept or
    reject."""
    if not compiled.is_tidy(obj):
        compiled.prune(obj)
        compiled.coerce_embedded(obj, lenient=False)
    compiled.default(obj)


def value_errors(
    compiled: CompiledSchema, new: Any, old: Any = ABSENT, scale: ScalePaths | None = None
) -> list[FieldError]:
    """Return the schema errors of a value, without CEL rules; errors in unchanged parts of
    ``old`` are dropped where upstream does so."""
    found = compiled.validate(new, old)
    if scale is not None:
        found += scale_errors(new, scale, status_only=False)
    found += compiled.embedded_errors(new)
    found += compiled.list_type_errors(new, old)
    return found


def keep_member(new: Object, old: Object, name: str) -> None:
    """Restore a member that the client may not change, in place."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def metadata_errors(metadata: Object, name_rule: NameRule) -> list[FieldError]:
    return validate_metadata(metadata, name_rule=name_rule, namespaced="namespace" in metadata)


def metadata_update_errors(
    new: Object,
    old: Object,
    name_rule: NameRule,
    checks: Sequence[MetadataCheck] = (MetadataCheck.UPDATE,),
    *,
    qualified: bool = False,
) -> list[FieldError]:
    """Return metadata errors of an update, each as often as upstream finds it: its generic layer
    makes both checks with any name, and the kind's strategy makes ``checks``, which look for
    ``qualified`` finalizers as well."""
    if same_json(new, old):
        return []
    unqualified = unqualified_errors(new) if qualified else []
    malformed = metadata_errors(new, name_rule)
    changed = validate_metadata_update(new, old, well_formed=not malformed)
    if not malformed and not changed and not unqualified:
        return []
    found = [*metadata_errors(new, name_is_path_segment), *validate_metadata_update(new, old)]
    for check in checks:
        if check is MetadataCheck.WHOLE:
            found += metadata_errors(new, name_rule)
        else:
            found += validate_metadata_update(new, old)
        found += unqualified
    return found


class SchemaPipeline:
    """One version of one resource, with all functions that decode and validate its objects."""

    def __init__(
        self,
        compiled: CompiledSchema,
        *,
        api_version: str,
        kind: str,
        has_status: bool = False,
        scale: ScalePaths | None = None,
        compile_rules: RuleCompiler = compile_if_any,
    ) -> None:
        self.compiled = compiled
        self.api_version, self.kind = api_version, kind
        self.has_status, self.scale = has_status, scale
        self._compile_rules = compile_rules

    @cached_property
    def rules(self) -> Program | None:
        """The compiled CEL rules; compiled at the first write, because reads do not need them."""
        return self._compile_rules(self.compiled.structural)

    def decode(self, obj: Object) -> list[str]:
        """Decode a client's object of this version, in place; return the unknown fields' paths.

        For another kind or version only the metadata is decoded, and ``check_create`` and
        ``check_update`` reject it. Raises ``MetaError`` with upstream's text.
        """
        unknown = decode_metadata(obj)
        if obj.get("kind") == self.kind and obj.get("apiVersion") == self.api_version:
            unknown += take_in(self.compiled, obj)
        return unknown

    def from_storage(self, obj: Object) -> list[str]:
        """Bring a stored object of this version to the current schema, in place; return pruned
        paths."""
        obj["metadata"] = coerce_metadata_lenient(obj.get("metadata"))
        pruned = self.after_conversion(obj)
        self.compiled.default(obj)
        return pruned

    def after_conversion(self, obj: Object) -> list[str]:
        """Prune fields that a converter left and this version does not have, in place; return
        their paths."""
        compiled = self.compiled
        if compiled.is_tidy(obj):
            return []
        pruned = compiled.prune_reporting(obj)
        compiled.drop_nulls(obj)
        compiled.coerce_embedded(obj, lenient=True)
        return pruned

    def default(self, obj: Object) -> None:
        self.compiled.default(obj)

    def leave_status(self, obj: Object) -> None:
        """Drop the status, in place, if it has its own subresource: a create ignores it."""
        if self.has_status:
            obj.pop("status", None)

    def keep_status(self, new: Object, old: Object) -> None:
        """Restore the old status, in place, if it has its own subresource: an update ignores it."""
        if self.has_status:
            keep_member(new, old, "status")

    def reads_alike(self, obj: Object) -> bool:
        """Return whether reading a decoded object back from storage would leave it unchanged; a
        status that was left out gets its default when read."""
        return not self._fills_status or "status" in obj

    @cached_property
    def _fills_status(self) -> bool:
        status = self.compiled.structural.properties.get("status")
        return self.has_status and status is not None and status.default is not None

    def check_create(
        self, obj: Object, warn: Warn = ignore_warning, name_rule: NameRule = name_is_subdomain
    ) -> list[FieldError]:
        """Return all errors of a decoded object that is to be created."""
        wrong_type = self.type_errors(obj)
        if wrong_type:
            return self._with_rules([*wrong_type, *self._part_errors(obj)], obj, None, warn)
        found = metadata_errors(obj["metadata"], name_rule)
        found += value_errors(self.compiled, obj, scale=self.scale)
        found = self._with_rules(found, obj, None, warn)
        if not found:
            for text in finalizer_advice(obj["metadata"]):
                warn(text)
        return found

    def check_update(
        self,
        new: Object,
        old: Object,
        *,
        status_only: bool = False,
        warn: Warn = ignore_warning,
        name_rule: NameRule = name_is_subdomain,
    ) -> list[FieldError]:
        """Return all errors of a decoded update; ``status_only`` for an update through
        ``/status``."""
        wrong_type = self.type_errors(new)
        if wrong_type:
            return self._with_rules([*wrong_type, *self._part_errors(new, old)], new, old, warn)
        found = metadata_update_errors(new["metadata"], old["metadata"], name_rule)
        if status_only:
            found += self._status_errors(new, old)
        else:
            found += value_errors(self.compiled, new, old, self.scale)
        found = self._with_rules(found, new, old, warn)
        if not found and not status_only:
            for text in finalizer_advice(new["metadata"], old["metadata"]):
                warn(text)
        return found

    def type_errors(self, obj: Object) -> list[FieldError]:
        """Return the errors for another kind or version, after which metadata and schema are not
        checked."""
        found: list[FieldError] = []
        if obj.get("kind") != self.kind:
            found.append(invalid("kind", obj.get("kind", ""), f"must be {self.kind}"))
        if obj.get("apiVersion") != self.api_version:
            text = f"must be {self.api_version}"
            found.append(invalid("apiVersion", obj.get("apiVersion", ""), text))
        return found

    def _part_errors(self, new: Object, old: Any = ABSENT) -> list[FieldError]:
        """Return the errors of the checks that apply to every kind."""
        return [*self.compiled.embedded_errors(new), *self.compiled.list_type_errors(new, old)]

    def _status_errors(self, new: Object, old: Object) -> list[FieldError]:
        """Return the errors of a status; like upstream, without those of embedded resources in
        it."""
        compiled = self.compiled
        found = compiled.validate_status(new.get("status", ABSENT), old.get("status", ABSENT))
        if self.scale is not None:
            found += scale_errors(new, self.scale, status_only=True)
        found += compiled.list_type_errors(new, old)
        return found

    def _with_rules(
        self, found: list[FieldError], new: Object, old: Object | None, warn: Warn
    ) -> list[FieldError]:
        """Return ``found`` and the errors of the CEL rules, if those can still run."""
        program = self.rules
        if program is None:
            return found
        if any(error.kind in STOPS_RULES for error in found):
            return [*found, RULES_SKIPPED]
        outcome = program.evaluate(new, old)
        for text in outcome.warnings:
            warn(text)
        return found + outcome.errors


def pipeline_of(
    crd: Crd, version: CrdVersion, compile_rules: RuleCompiler = compile_if_any
) -> SchemaPipeline:
    """Return the pipeline of a CRD's version, for tools that have no server."""
    return SchemaPipeline(
        compile_schema(version.schema, preserve_unknown=crd.preserve_unknown),
        api_version=f"{crd.group}/{version.name}",
        kind=crd.names.kind,
        has_status=version.has_status,
        scale=version.scale,
        compile_rules=compile_rules,
    )
