"""Validates one schema of a CRD: root restrictions, structure, defaults, CEL rules.

Called by ``crd.py``. Defaults are checked only in a structural schema, and rules are compiled only
where the schema around them is valid. The rule compiler is passed in
(``kube/schema/cel_rules/lazy_engine.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from instar.base.field_errors import FieldError, child, forbidden, invalid
from instar.base.json_values import Object
from instar.kube.crds.go_values import SCHEMA_FIELDS, schema_value
from instar.kube.crds.validation.options import ValidationOptions, has_unpruned
from instar.kube.crds.validation.schema_node import NodeRules, node_errors
from instar.kube.crds.validation.unsupported_schema import conversion_problem
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.structure.structural_rules import structural_errors
from instar.kube.schema.validation.defaults_check import default_errors

Schema = Mapping[str, Any]

_ROOT_WITH_STATUS = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties "
    "ExternalDocs Example XPreserveUnknownFields XValidations"
)


class RuleChecker(Protocol):
    """Compiles the rules of a schema, estimates their cost and returns the errors.

    ``old_rules`` are the rule texts of the old object (they may use newer features). With
    ``per_expression_limit_waived`` one expression may exceed its cost limit, but not the total.
    ``spoiled`` tells which nodes, by path, have other errors; their rules are not checked.
    """

    def __call__(
        self,
        root: Structural,
        path: str,
        old_rules: frozenset[str],
        per_expression_limit_waived: bool,
        spoiled: Callable[[str], bool],
        /,
    ) -> list[FieldError]: ...


def schema_errors(
    validation: Object | None,
    path: str,
    options: ValidationOptions,
    *,
    has_status: bool,
    unchanged: bool,
    check_rules: RuleChecker | None,
) -> list[FieldError]:
    """Return the errors; ``path`` is the parent of ``openAPIV3Schema``."""
    schema = (validation or {}).get("openAPIV3Schema")
    if schema is None:
        return []
    at = child(path, "openAPIV3Schema")
    errors = _root_errors(schema, at, has_status)
    problem = conversion_problem(schema) if options.structural else None
    sound = False
    if options.structural and problem is None:
        structure = _structure_errors(schema, at, options)
        sound = not structure
        errors += structure
    walked = list(node_errors(schema, at, _node_rules(options)))
    errors += walked
    if problem is not None and not errors:
        errors.append(invalid(at, "", problem))
    if sound and check_rules is not None:
        spoiled = _with_ancestors(walked).__contains__
        errors += check_rules(structural(schema), at, options.old_rules, unchanged, spoiled)
    return errors


def _node_rules(options: ValidationOptions) -> NodeRules:
    return NodeRules(
        valid_types=options.valid_types,
        atomic_sets=options.atomic_sets,
        sound_keys=options.sound_keys,
        no_defaults=None if options.allow_defaults else "",
    )


def _root_errors(schema: Schema, at: str, has_status: bool) -> list[FieldError]:
    errors = _status_root_errors(schema, at) if has_status else []
    if schema.get("nullable"):
        errors.append(forbidden(child(at, "nullable"), "nullable cannot be true at the root"))
    return errors


def _status_root_errors(schema: Schema, at: str) -> list[FieldError]:
    """Check the root keywords of a schema with a status subresource: only keywords that also work
    when the status is validated alone are allowed."""
    for keyword, shown in SCHEMA_FIELDS.items():
        value = schema.get(keyword)
        if value is None or value is False or value in ("", [], {}):
            continue
        if keyword == "type" and value != "object":
            text = (
                'only "object" is allowed as the type at the root of the schema '
                "if the status subresource is enabled"
            )
            return [invalid(child(at, "type"), value, text)]
        if shown not in _ROOT_WITH_STATUS.split():
            text = (
                f"only [{_ROOT_WITH_STATUS}] fields are allowed at the root of the "
                "schema if the status subresource is enabled"
            )
            return [invalid(at, schema_value(schema), text)]
    return []


def _structure_errors(schema: Schema, at: str, options: ValidationOptions) -> list[FieldError]:
    errors = structural_errors(schema, at)
    if errors:
        return errors
    found = default_errors(schema, at)
    if has_unpruned(found) and not options.pruned_defaults:
        return default_errors(schema, at, require_pruned=False)
    return found


def _with_ancestors(problems: list[FieldError]) -> frozenset[str]:
    """Return the paths that have an error at or below them."""
    places: set[str] = set()
    for problem in problems:
        field = problem.field
        while field and field not in places:
            places.add(field)
            field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return frozenset(places)
