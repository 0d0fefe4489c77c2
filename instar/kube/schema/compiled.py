"""``CompiledSchema``: all functions of one version's schema (prune, default, validate …).

Built once per CRD change by ``server/registry/resources/serving.py`` and by the tools.
``pipeline.py`` calls the functions in the right order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from instar.base.field_errors import NO_FIELD, OMITTED, FieldError, invalid
from instar.kube.schema.already_normal import Tidy, compile_normal_check
from instar.kube.schema.defaulting import Step, compile_defaulter, compile_null_dropper
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.metadata.embedded_resources import (
    Coercer,
    Judge,
    below_root,
    compile_coercer,
    compile_judge,
)
from instar.kube.schema.pruning import Pruner, compile_pruner, dropped_paths, keep
from instar.kube.schema.structure.interning import intern_node
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.prune_key import skeleton
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.cost import validation_cost
from instar.kube.schema.validation.findings import TookTooLong, limit_time
from instar.kube.schema.validation.list_types import (
    Uniqueness,
    compile_uniqueness,
    list_type_errors,
)
from instar.kube.schema.validation.validate import Validator, compile_validator

__all__ = ["ABSENT", "CompiledSchema", "compile_schema"]


_EVERYDAY_COST = 8
"""Number of schemas per value up to which validation is no more work than decoding."""


class CompiledSchema:
    """One version's schema as functions, each compiled on first use, because many schemas only
    ever need one or two of them."""

    def __init__(self, root: Structural, *, declared: bool, preserve_unknown: bool) -> None:
        self.structural = root
        self.prunes = not preserve_unknown
        self._declared = declared
        self.judging_weight: int | None = None
        """The work of validation as a multiple of the object's size, 1 for usual schemas; None
        until an object was validated, which may take long the first time."""

    @cached_property
    def _pruner(self) -> Pruner:
        return compile_pruner(self.structural) if self.prunes else keep

    @cached_property
    def _skeleton(self) -> Any:
        return skeleton(self.structural) if self.prunes else None

    @cached_property
    def _drop_nulls(self) -> Step | None:
        return compile_null_dropper(self.structural) if self.prunes else None

    @cached_property
    def _tidy(self) -> Tidy:
        return compile_normal_check(self.structural)

    @cached_property
    def _defaulter(self) -> Step | None:
        return compile_defaulter(self.structural)

    @cached_property
    def _validator(self) -> Validator | None:
        if not self._declared:
            return None
        return compile_validator(self.structural, resource=True, pruned=self.prunes)

    @cached_property
    def _status(self) -> Validator | None:
        status = self.structural.properties.get("status")
        return None if status is None else compile_validator(status, pruned=self.prunes)

    @cached_property
    def _coercer(self) -> Coercer | None:
        return compile_coercer(below_root(self.structural))

    @cached_property
    def _judge(self) -> Judge | None:
        return compile_judge(below_root(self.structural))

    @cached_property
    def _uniqueness(self) -> Uniqueness | None:
        return compile_uniqueness(self.structural)

    def learn_judging_weight(self) -> int:
        if self.judging_weight is None:
            self.judging_weight = max(1, validation_cost(self.structural) // _EVERYDAY_COST)
        return self.judging_weight

    @property
    def has_defaults(self) -> bool:
        return self._defaulter is not None

    def is_tidy(self, obj: dict[str, Any]) -> bool:
        """Return whether pruning, dropping nulls and coercing would certainly change nothing."""
        if not self.prunes:
            return self._coercer is None
        return self._tidy(obj)

    def prune(self, obj: dict[str, Any]) -> None:
        """Remove unknown fields, in place; apiVersion, kind and metadata are left alone."""
        self._pruner(obj)

    def prune_reporting(self, obj: dict[str, Any]) -> list[str]:
        """Remove unknown fields, in place, and return the removed paths, sorted."""
        return dropped_paths(self._pruner(obj))

    def drop_nulls(self, obj: dict[str, Any]) -> None:
        """Remove nulls that are neither allowed nor about to be defaulted, in place."""
        if self._drop_nulls is not None:
            self._drop_nulls(obj)

    def default(self, obj: dict[str, Any]) -> None:
        """Apply defaults, in place."""
        if self._defaulter is not None:
            self._defaulter(obj)

    def coerce_embedded(self, obj: dict[str, Any], *, lenient: bool) -> list[str]:
        """Coerce the metadata of embedded resources, in place; return their unknown metadata paths,
        sorted.

        Strict mode raises ``MetaError`` with upstream's text.
        """
        unknown: list[str] = []
        if self._coercer is not None:
            self._coercer(obj, "", lenient, unknown)
        return sorted(unknown)

    def validate(self, obj: Any, old: Any = ABSENT) -> list[FieldError]:
        if self._validator is None:
            return []
        if self.judging_weight == 1:
            return self._validator.validate(obj, old)
        return _validate_in_time(lambda validator: validator.validate(obj, old), self._validator)

    def validate_status(self, status: Any, old: Any = ABSENT) -> list[FieldError]:
        """Validate only the status, as for a write to ``/status``."""
        if self._status is None or status is ABSENT:
            return []
        judge = partial(Validator.validate, value=status, old=old, path="status")
        return _validate_in_time(judge, self._status)

    def embedded_errors(self, obj: Any) -> list[FieldError]:
        return [] if self._judge is None else self._judge(obj, "")

    def list_type_errors(self, new: Any, old: Any = ABSENT) -> list[FieldError]:
        return list_type_errors(self._uniqueness, new, old)

    def same_pruning(self, other: CompiledSchema) -> bool:
        """Return whether an object pruned by one schema is unchanged by the other, and vice
        versa."""
        return bool(self._skeleton == other._skeleton)


def _validate_in_time(
    judge: Callable[[Validator], list[FieldError]], validator: Validator
) -> list[FieldError]:
    try:
        with limit_time():
            return judge(validator)
    except TookTooLong:
        text = "it took too long to validate this by its schema"
        return [invalid(NO_FIELD, OMITTED, text)]


def compile_schema(
    raw: Mapping[str, Any] | None, *, preserve_unknown: bool = False
) -> CompiledSchema:
    """Compile a version's openAPIV3Schema; without one every field except metadata is unknown."""
    root = intern_node(structural(raw)) if raw is not None else Structural()
    return CompiledSchema(root, declared=raw is not None, preserve_unknown=preserve_unknown)
