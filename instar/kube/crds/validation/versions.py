"""Validates ``spec.versions`` of a CRD (internal form): names, storage flag, deprecation warnings.

Called by ``crd.py``, with the internal form of ``kube/api/crd_codec.py``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from instar.base.field_errors import FieldError, child, forbidden, index, invalid
from instar.base.json_values import Object, same_json
from instar.kube.api.string_rules import dns1035_label
from instar.kube.crds.go_values import versions_value

_WARNING_MAX = 256
_PRINTABLE_TEXT = "must only contain printable UTF-8 characters"
_SHARED_FIELDS = {
    "schema": ("validation", "schemas", "validation"),
    "subresources": ("subresources", "subresources", "subresources"),
    "additionalPrinterColumns": (
        "additionalPrinterColumns",
        "additionalPrinterColumns",
        "additionalPrinterColumns",
    ),
}
"""Per-version field -> its top-level field, its plural in messages, the field to use instead."""


def version_name_errors(name: str, path: str) -> list[FieldError]:
    found = dns1035_label(name)
    return [invalid(path, name, ",".join(found))] if found else []


def warning_errors(version: Object, path: str) -> list[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    problems = list(_warning_problems(warning))
    if not version.get("deprecated"):
        problems = ["can only be set for deprecated versions"]
    return [invalid(child(path, "deprecationWarning"), warning, text) for text in problems]


def _warning_problems(warning: str) -> Iterator[str]:
    size = len(warning.encode("utf-8", "surrogatepass"))
    if size > _WARNING_MAX:
        yield f"must be <= {_WARNING_MAX} characters long"
    if not warning:
        yield "must not be an empty string"
    offset = 0
    for char in warning:
        if unicodedata.category(char)[0] not in "LMNPS" and char != " ":
            yield f"{_PRINTABLE_TEXT}; non-printable character found at index {offset}"
            return
        offset += len(char.encode("utf-8", "surrogatepass"))


def exclusion_errors(spec: Object, path: str) -> list[FieldError]:
    """Check that a field is at the top level or in the versions, not both, and not equal in all
    versions."""
    versions = spec.get("versions") or []
    errors: list[FieldError] = []
    for field, (top, plural, _) in _SHARED_FIELDS.items():
        if spec.get(top) is not None and any(item.get(field) is not None for item in versions):
            text = f"top-level and per-version {plural} are mutually exclusive"
            errors.append(forbidden(child(path, top), text))
    for field, (_, plural, instead) in _SHARED_FIELDS.items():
        if _all_identical([item.get(field) for item in versions]):
            text = (
                f"per-version {plural} may not all be set to identical values "
                f"(top-level {instead} should be used instead)"
            )
            errors.append(invalid(child(path, "versions"), versions_value(versions), text))
    return errors


def _all_identical(values: list[Any]) -> bool:
    return bool(values) and values[0] is not None and all(same_json(values[0], v) for v in values)


def version_list_errors(spec: Object, path: str) -> list[FieldError]:
    """Check for unique names, one storage version, and a legacy ``version`` that names the first
    one."""
    versions = spec.get("versions") or []
    names = [item.get("name", "") for item in versions]
    at, value = child(path, "versions"), versions_value(versions)
    errors: list[FieldError] = []
    if len(set(names)) != len(names):
        errors.append(invalid(at, value, "must contain unique version names"))
    if sum(bool(item.get("storage")) for item in versions) != 1:
        text = "must have exactly one version marked as storage version"
        errors.append(invalid(at, value, text))
    first = spec.get("version")
    if first:
        errors += version_name_errors(first, child(path, "version"))
        if names and names[0] != first:
            text = "must match the first version in spec.versions"
            errors.append(invalid(child(path, "version"), first, text))
    return errors


def stored_version_errors(crd: Object) -> list[FieldError]:
    """Check that every stored version is still in ``spec.versions``."""
    path = "status.storedVersions"
    stored = crd["status"].get("storedVersions") or []
    versions = crd["spec"].get("versions") or []
    if not stored:
        given = crd["status"].get("storedVersions")
        return [invalid(path, given, "must have at least one stored version")]
    errors = [
        invalid(path, stored, f"must have the storage version {item.get('name', '')}")
        for item in versions
        if item.get("storage") and item.get("name", "") not in stored
    ]
    known = {item.get("name", "") for item in versions}
    for position, name in enumerate(stored):
        if name not in known:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            errors.append(invalid(index(path, position), name, text))
    return errors
