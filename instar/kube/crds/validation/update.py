"""Validates updates of a CustomResourceDefinition: all rules of ``crd.py``, plus immutable fields.

Called by ``server/registry/kinds/crds.py`` and the reviewer.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, invalid
from instar.base.json_values import Object
from instar.kube.crds.validation.crd import common_errors, spec_errors
from instar.kube.crds.validation.names import name_format_errors
from instar.kube.crds.validation.options import ValidationOptions
from instar.kube.crds.validation.schema import RuleChecker


def validate_update(
    new: Object, old: Object, *, version: str = "v1", check_rules: RuleChecker | None = None
) -> list[FieldError]:
    """Return all errors of ``new`` after ``prepare_for_update``; both are internal."""
    options = ValidationOptions(new, old, version)
    return [
        *spec_errors(new["spec"], options, check_rules),
        *_immutable_errors(new["spec"], old["spec"], options.established),
        *common_errors(new, old, options),
    ]


def validate_status_update(new: Object, old: Object) -> list[FieldError]:
    """Return format errors of accepted names; stored versions and conditions are not validated."""
    return name_format_errors(new["status"].get("acceptedNames") or {}, "status.acceptedNames")


def _immutable_errors(new: Object, old: Object, established: bool) -> list[FieldError]:
    names, old_names = new.get("names") or {}, old.get("names") or {}
    pairs = [
        ("spec.group", new.get("group", ""), old.get("group", "")),
        ("spec.names.plural", names.get("plural", ""), old_names.get("plural", "")),
    ]
    if established:
        pairs = [
            ("spec.scope", new.get("scope", ""), old.get("scope", "")),
            ("spec.names.kind", names.get("kind", ""), old_names.get("kind", "")),
            *pairs,
        ]
    return [
        invalid(path, value, "field is immutable") for path, value, was in pairs if value != was
    ]
