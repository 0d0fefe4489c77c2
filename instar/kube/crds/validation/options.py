"""Which optional CRD rules apply to a write: all on create, fewer on update.

``crd.py``, ``schema.py`` and ``update.py`` consult ``ValidationOptions``. An update may keep a
violation that the stored CRD already has; then the rule is relaxed for the whole CRD. Requests in
``v1beta1`` get that version's laxer rules. Each option is computed on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from instar.base.field_errors import FieldError, FieldErrorCode
from instar.base.json_values import Object, same_json
from instar.kube.crds.conditions import ESTABLISHED, is_true
from instar.kube.crds.validation.ca_bundle import ca_bundle_problem
from instar.kube.crds.validation.cel_rules import VALIDATIONS
from instar.kube.crds.validation.conversion import KNOWN_REVIEWS
from instar.kube.crds.validation.list_types import key_errors, set_item_errors
from instar.kube.crds.validation.schema_node import EMBEDDED, TYPES
from instar.kube.crds.validation.selectable_fields import MOST
from instar.kube.crds.validation.unsupported_schema import conversion_problem, nodes
from instar.kube.schema.structure.structural_rules import structural_errors
from instar.kube.schema.validation.defaults_check import default_errors

Schema = Mapping[str, Any]

_STRUCTURAL_ONLY = (
    EMBEDDED,
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    VALIDATIONS,
)


class ValidationOptions:
    """Rules that apply to a write; ``new`` and ``old`` are internal, ``old`` is None on create."""

    def __init__(self, new: Object, old: Object | None, version: str) -> None:
        self._spec: Object = new["spec"]
        self._old = old
        self._old_spec: Object | None = None if old is None else old["spec"]
        self._beta = version == "v1beta1"

    @cached_property
    def established(self) -> bool:
        """Whether scope and kind are immutable."""
        return self._old is not None and is_true(self._old["status"], ESTABLISHED)

    @cached_property
    def allow_defaults(self) -> bool:
        return not self._beta or self._old_has(_has_default)

    @cached_property
    def known_review(self) -> bool:
        conversion = (self._old_spec or {}).get("conversion") or {}
        reviews = conversion.get("conversionReviewVersions") or []
        return not reviews or any(review in KNOWN_REVIEWS for review in reviews)

    @cached_property
    def valid_bundle(self) -> bool:
        conversion = (self._old_spec or {}).get("conversion") or {}
        client = conversion.get("webhookClientConfig") or {}
        return self.established and ca_bundle_problem(client.get("caBundle") or "") is None

    @cached_property
    def schema_everywhere(self) -> bool:
        if self._beta:
            return False
        return self._old_spec is None or all_have_schema(self._old_spec)

    @cached_property
    def valid_types(self) -> bool:
        return not self._beta and not self._old_has(_has_unknown_type)

    @cached_property
    def structural(self) -> bool:
        """Whether schemas must be structural; always if the spec uses a feature that needs
        structural schemas."""
        if not self._spec.get("preserveUnknownFields"):
            return True
        if has_defaults(self._spec) or any(map(_has_extension, schemas_of(self._spec))):
            return True
        return not self._beta and not self._old_has(_is_loose)

    @cached_property
    def pruned_defaults(self) -> bool:
        return not self._beta and not self._old_has(_has_unpruned_default)

    @cached_property
    def atomic_sets(self) -> bool:
        return not self._beta and not self._old_has(_has_loose_set)

    @cached_property
    def sound_keys(self) -> bool:
        return not self._beta and not self._old_has(_has_unsound_key)

    @cached_property
    def no_preserve(self) -> bool:
        """Whether ``preserveUnknownFields: true`` is rejected."""
        return not self._beta and not (self._old_spec or {}).get("preserveUnknownFields")

    @cached_property
    def old_rules(self) -> frozenset[str]:
        """Texts of all rules and message expressions of the old object."""
        return frozenset(
            rule[field]
            for schema in schemas_of(self._old_spec or {})
            for node in nodes(schema)
            for rule in node.get(VALIDATIONS) or ()
            for field in ("rule", "messageExpression")
            if rule.get(field)
        )

    def unchanged_schema(self, version: str) -> bool:
        """Return whether the version's schema is unchanged; a new version is compared with the
        old shared one."""
        if self._old_spec is None:
            return False
        new = effective_field(self._spec, version, "schema")
        return new is not None and same_json(
            new, effective_field(self._old_spec, version, "schema")
        )

    def limits_selectable(self, version: str | None) -> bool:
        """Return whether the limit of eight fields applies; None means the top-level list."""
        old_spec = self._old_spec or {}
        if version is None:
            new, old = self._spec.get("selectableFields"), old_spec.get("selectableFields")
        else:
            new = effective_field(self._spec, version, "selectableFields")
            old = effective_field(old_spec, version, "selectableFields")
        return not (old and len(old) > MOST and same_json(new, old))

    def _old_has(self, flaw: Callable[[Schema], bool]) -> bool:
        """Return whether any schema of the old object violates the rule."""
        return self._old_spec is not None and any(map(flaw, schemas_of(self._old_spec)))


def effective_field(spec: Object, version: str, field: str) -> Any:
    """Return a version's value of a field that may be at the top level or in the version."""
    top = spec.get("validation" if field == "schema" else field)
    if top is not None:
        return top
    for item in spec.get("versions") or ():
        if item.get("name") == version:
            return item.get(field)
    return None


def schemas_of(spec: Object) -> Iterator[Schema]:
    """Yield every ``openAPIV3Schema`` of an internal spec, the shared one first."""
    for holder in (
        spec.get("validation"),
        *(item.get("schema") for item in spec.get("versions") or ()),
    ):
        schema = (holder or {}).get("openAPIV3Schema")
        if schema is not None:
            yield schema


def all_have_schema(spec: Object) -> bool:
    if (spec.get("validation") or {}).get("openAPIV3Schema") is not None:
        return True
    return all(
        (item.get("schema") or {}).get("openAPIV3Schema") is not None
        for item in spec.get("versions") or ()
    )


def has_defaults(spec: Object) -> bool:
    return any(map(_has_default, schemas_of(spec)))


def _has_default(schema: Schema) -> bool:
    return any(node.get("default") is not None for node in nodes(schema))


def _has_extension(schema: Schema) -> bool:
    return any(name in node for node in nodes(schema) for name in _STRUCTURAL_ONLY)


def _has_unknown_type(schema: Schema) -> bool:
    return any(node.get("type", "") not in ("", *TYPES) for node in nodes(schema))


def _is_loose(schema: Schema) -> bool:
    return conversion_problem(schema) is not None or bool(structural_errors(schema, ""))


def _has_unpruned_default(schema: Schema) -> bool:
    if not _has_default(schema) or _is_loose(schema):
        return False
    return has_unpruned(default_errors(schema, ""))


def has_unpruned(errors: list[FieldError]) -> bool:
    """Return whether an error is about a default that pruning would change."""
    return any(error.code is FieldErrorCode.UNPRUNED_DEFAULT for error in errors)


def _has_loose_set(schema: Schema) -> bool:
    return any(any(set_item_errors(node, "")) for node in nodes(schema))


def _has_unsound_key(schema: Schema) -> bool:
    return any(any(key_errors(node, "")) for node in nodes(schema))
