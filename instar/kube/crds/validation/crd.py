"""Validates a whole CustomResourceDefinition, in upstream's order of errors.

Called by ``server/registry/kinds/crds.py`` on create (``update.py`` for updates), the reviewer and
the snapshots. The rules run on the internal form (``kube/api/crd_codec.py``), so error messages
name paths of v1beta1, whatever version the client wrote. Metadata is validated by the registry,
except that the name must match the spec.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, child, index, invalid, not_supported, required
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_subdomain
from instar.kube.crds.api_approval import approval_errors
from instar.kube.crds.validation.columns import column_errors, subresource_errors
from instar.kube.crds.validation.conversion import conversion_errors
from instar.kube.crds.validation.names import name_format_errors, required_name_errors
from instar.kube.crds.validation.options import ValidationOptions, effective_field, has_defaults
from instar.kube.crds.validation.schema import RuleChecker, schema_errors
from instar.kube.crds.validation.selectable_fields import selectable_errors
from instar.kube.crds.validation.unsupported_schema import conversion_problem
from instar.kube.crds.validation.versions import (
    exclusion_errors,
    stored_version_errors,
    version_list_errors,
    version_name_errors,
    warning_errors,
)

_SCOPES = ("Cluster", "Namespaced")


def validate_create(
    internal: Object, *, version: str = "v1", check_rules: RuleChecker | None = None
) -> list[FieldError]:
    """Return all errors of a new CRD; ``version`` is the API version that the client used."""
    options = ValidationOptions(internal, None, version)
    return [
        *_name_errors(internal),
        *spec_errors(internal["spec"], options, check_rules),
        *common_errors(internal, None, options),
    ]


def common_errors(crd: Object, old: Object | None, options: ValidationOptions) -> list[FieldError]:
    """Return the errors that are checked after the spec, on create and update alike."""
    return [
        *name_format_errors(crd["status"].get("acceptedNames") or {}, "status.acceptedNames"),
        *stored_version_errors(crd),
        *approval_errors(crd, old),
        *_preserve_errors(crd["spec"], options),
    ]


def _name_errors(crd: Object) -> list[FieldError]:
    name, spec = crd["metadata"].get("name", ""), crd["spec"]
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    prefix, text = (
        crd["metadata"].get("generateName", ""),
        'must be spec.names.plural+"."+spec.group',
    )
    found = [invalid("metadata.generateName", prefix, text)] if prefix not in ("", wanted) else []
    if name and name != wanted:
        found.append(invalid("metadata.name", name, text))
    return found


def _preserve_errors(spec: Object, options: ValidationOptions) -> list[FieldError]:
    if not spec.get("preserveUnknownFields") or not options.no_preserve:
        return []
    text = (
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        "spec.versions[*].schema instead"
    )
    return [invalid("spec.preserveUnknownFields", True, text)]


def spec_errors(
    spec: Object, options: ValidationOptions, check_rules: RuleChecker | None, path: str = "spec"
) -> list[FieldError]:
    names = spec.get("names") or {}
    return [
        *_group_errors(spec.get("group", ""), child(path, "group")),
        *_scope_errors(spec.get("scope", ""), child(path, "scope")),
        *_presence_errors(spec, path, options),
        *_default_errors(spec, path, options),
        *_each_version(spec, path, options, check_rules),
        *exclusion_errors(spec, path),
        *version_list_errors(spec, path),
        *required_name_errors(names, child(path, "names")),
        *name_format_errors(names, child(path, "names")),
        *_top_level(spec, path, options, check_rules),
        *_conversion(spec, path, options),
    ]


def _group_errors(group: str, path: str) -> list[FieldError]:
    if not group:
        return [required(path)]
    found = dns1123_subdomain(group)
    if found:
        return [invalid(path, group, ",".join(found))]
    if "." not in group:
        return [invalid(path, group, "should be a domain with at least one dot")]
    return []


def _scope_errors(scope: str, path: str) -> list[FieldError]:
    if not scope:
        return [required(path)]
    return [] if scope in _SCOPES else [not_supported(path, scope, _SCOPES)]


def _presence_errors(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    """Check that every version has a schema; for old CRDs without one, that served versions
    which prune have one."""
    if (spec.get("validation") or {}).get("openAPIV3Schema") is not None:
        return []
    if not options.schema_everywhere and spec.get("preserveUnknownFields"):
        return []
    detail = "" if options.schema_everywhere else "because otherwise all fields are pruned"
    return [
        required(f"{index(child(path, 'versions'), position)}.schema.openAPIV3Schema", detail)
        for position, item in enumerate(spec.get("versions") or ())
        if (item.get("schema") or {}).get("openAPIV3Schema") is None
        and (options.schema_everywhere or item.get("served"))
    ]


def _default_errors(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    if not (options.allow_defaults and spec.get("preserveUnknownFields") and has_defaults(spec)):
        return []
    text = "must be false in order to use defaults in the schema"
    return [invalid(child(path, "preserveUnknownFields"), True, text)]


def _each_version(
    spec: Object, path: str, options: ValidationOptions, check_rules: RuleChecker | None
) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, item in enumerate(spec.get("versions") or ()):
        at, name = index(child(path, "versions"), position), item.get("name", "")
        errors += version_name_errors(name, child(at, "name"))
        errors += warning_errors(item, at)
        errors += schema_errors(
            item.get("schema"),
            child(at, "schema"),
            options,
            has_status=_has_status(effective_field(spec, name, "subresources")),
            unchanged=options.unchanged_schema(name),
            check_rules=check_rules,
        )
        errors += subresource_errors(item.get("subresources"), child(at, "subresources"))
        columns = item.get("additionalPrinterColumns")
        errors += column_errors(columns, child(at, "additionalPrinterColumns"))
        errors += _version_selectable(item, at, options)
    return errors


def _version_selectable(item: Object, at: str, options: ValidationOptions) -> list[FieldError]:
    """Check a version's selectable fields; upstream does not look into a shared top-level
    schema."""
    fields, name = item.get("selectableFields"), item.get("name", "")
    if not fields:
        return []
    path = child(at, "selectableFields")
    schema = (item.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        text = "may only be set when `version.schema.openAPIV3Schema` is not included"
        return [invalid(path, "", text)]
    problem = conversion_problem(schema)
    if problem is not None:
        return [invalid(child(at, "schema.openAPIV3Schema"), "", problem)]
    limited = options.limits_selectable(name)
    return selectable_errors(fields, schema, path, limited=limited)


def _has_status(subresources: Object | None) -> bool:
    return (subresources or {}).get("status") is not None


def _top_level(
    spec: Object, path: str, options: ValidationOptions, check_rules: RuleChecker | None
) -> list[FieldError]:
    versions = spec.get("versions") or [{}]
    anywhere = [spec.get("subresources"), *(item.get("subresources") for item in versions)]
    columns = spec.get("additionalPrinterColumns")
    return [
        *schema_errors(
            spec.get("validation"),
            child(path, "validation"),
            options,
            has_status=any(map(_has_status, anywhere)),
            unchanged=options.unchanged_schema(versions[0].get("name", "")),
            check_rules=check_rules,
        ),
        *subresource_errors(spec.get("subresources"), child(path, "subresources")),
        *column_errors(columns, child(path, "additionalPrinterColumns")),
        *_top_selectable(spec, path, options),
    ]


def _top_selectable(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    fields = spec.get("selectableFields")
    if not fields:
        return []
    at = child(path, "selectableFields")
    schema = (spec.get("validation") or {}).get("openAPIV3Schema")
    if schema is None:
        return [invalid(at, "", "may only be set when validations.schema is included")]
    problem = conversion_problem(schema)
    if problem is not None:
        return [invalid(child(path, "validation.openAPIV3Schema"), "", problem)]
    limited = options.limits_selectable(None)
    return selectable_errors(fields, schema, at, limited=limited)


def _conversion(spec: Object, path: str, options: ValidationOptions) -> list[FieldError]:
    conversion, at = spec.get("conversion"), child(path, "conversion")
    errors: list[FieldError] = []
    strategy = (conversion or {}).get("strategy", "None")
    if strategy != "None" and spec.get("preserveUnknownFields"):
        text = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid(child(at, "strategy"), strategy, text))
    return errors + conversion_errors(
        conversion, at, known_review=options.known_review, valid_bundle=options.valid_bundle
    )
