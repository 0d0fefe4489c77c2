"""Validates the requested and accepted names of a CRD.

Called by ``crd.py`` and ``update.py``.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, child, index, invalid, required
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1035_label


def required_name_errors(names: Object, path: str) -> list[FieldError]:
    return [
        required(child(path, field))
        for field in ("plural", "singular", "kind", "listKind")
        if not names.get(field)
    ]


def name_format_errors(names: Object, path: str) -> list[FieldError]:
    """Return format errors, which also apply to accepted names; empty names are not checked."""
    errors: list[FieldError] = []
    for field in ("plural", "singular"):
        errors += _label(names.get(field) or "", child(path, field))
    for field in ("kind", "listKind"):
        errors += _mixed_case(names.get(field) or "", child(path, field))
    errors += _labels(names.get("shortNames") or [], child(path, "shortNames"))
    kind = names.get("kind")
    if kind and kind == names.get("listKind"):
        text = "kind and listKind may not be the same"
        errors.append(invalid(child(path, "listKind"), kind, text))
    return errors + _labels(names.get("categories") or [], child(path, "categories"))


def _label(name: str, path: str) -> list[FieldError]:
    found = dns1035_label(name) if name else []
    return [invalid(path, name, ",".join(found))] if found else []


def _mixed_case(name: str, path: str) -> list[FieldError]:
    found = dns1035_label(name.lower()) if name else []
    text = "may have mixed case, but should otherwise match: " + ",".join(found)
    return [invalid(path, name, text)] if found else []


def _labels(names: list[str], path: str) -> list[FieldError]:
    checked = ((position, name, dns1035_label(name)) for position, name in enumerate(names))
    return [
        invalid(index(path, position), name, ",".join(found))
        for position, name, found in checked
        if found
    ]
