"""Validation helpers shared by many kinds: counts, ports, names, percentages.

Called by most modules of this package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from instar.base.field_errors import FieldError, child, invalid, not_supported, required
from instar.kube.api.string_rules import (
    dns1123_label,
    dns1123_subdomain,
    label_value,
    qualified_name,
)

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
MOST_INT32 = 2**31 - 1
Rule = Callable[[str], list[str]]
"""Returns the error messages of a text."""
_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)
_PORT_TEXT = "must be between 1 and 65535, inclusive"
_LONGEST_PORT_NAME = 15
_PORT_NAME = re.compile("[-a-z0-9]+", re.ASCII)
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def texts_at(path: str, value: Any, texts: Iterable[str]) -> list[FieldError]:
    """Return an "Invalid value" error at ``path`` for each text."""
    return [invalid(path, value, text) for text in texts]


def count_errors(obj: Mapping[str, Any], path: str, *names: str) -> list[FieldError]:
    """Return errors for negative members."""
    return [
        invalid(child(path, name), obj[name], NOT_NEGATIVE)
        for name in names
        if obj.get(name) is not None and obj[name] < 0
    ]


def name_errors(value: str, path: str, rule: Rule = dns1123_subdomain) -> list[FieldError]:
    return texts_at(path, value, rule(value))


def label_name_errors(value: str, path: str) -> list[FieldError]:
    return texts_at(path, value, qualified_name(value))


def dns_label_errors(value: str, path: str) -> list[FieldError]:
    return texts_at(path, value, dns1123_label(value))


def label_map_errors(labels: Mapping[str, str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name, value in labels.items():
        found += texts_at(path, name, qualified_name(name))
        found += texts_at(path, value, label_value(value))
    return found


def annotation_errors(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name in annotations:
        found += texts_at(path, name, qualified_name(name.lower()))
    return found


def port_errors(value: int, path: str) -> list[FieldError]:
    return [] if 1 <= value <= 65535 else [invalid(path, value, _PORT_TEXT)]


def port_name(name: str) -> list[str]:
    found = []
    if len(name) > _LONGEST_PORT_NAME:
        found.append(f"must be no more than {_LONGEST_PORT_NAME} characters")
    if _PORT_NAME.fullmatch(name) is None:
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port_or_name_errors(value: int | str, path: str) -> list[FieldError]:
    if isinstance(value, int):
        return port_errors(value, path)
    return texts_at(path, value, port_name(value))


def choice_errors(value: Any, path: str, choices: Iterable[str]) -> list[FieldError]:
    listed = tuple(choices)
    return [] if value in listed else [not_supported(path, value, listed)]


def config_key_errors(key: str, path: str) -> list[FieldError]:
    if not key:
        return [required(path)]
    if len(key) > 253:
        return [invalid(path, key, "must be no more than 253 characters")]
    if _CONFIG_KEY.fullmatch(key) is None:
        return [invalid(path, key, _CONFIG_KEY_TEXT)]
    if key == ".":
        return [invalid(path, key, "must not be '.'")]
    if key.startswith(".."):
        text = "must not be '..'" if key == ".." else "must not start with '..'"
        return [invalid(path, key, text)]
    return []


def int_or_percent_errors(value: int | str, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [invalid(path, value, _PERCENT_TEXT)]
    return [] if value >= 0 else [invalid(path, value, NOT_NEGATIVE)]


def whole_percent_errors(value: int | str | None, path: str) -> list[FieldError]:
    if not isinstance(value, str) or _PERCENT.fullmatch(value) is None or len(value) < 4:
        return []
    if int(value[:-1][:9]) <= 100:
        return []
    return [invalid(path, value, "must not be greater than 100%")]


def amount(value: int | str | None) -> int:
    """Return the number of a count or percentage."""
    if isinstance(value, str):
        return int(value[:-1][:9]) if _PERCENT.fullmatch(value) else 0
    return value or 0


def immutable_errors(new: Any, old: Any, path: str, shown: Any = None) -> list[FieldError]:
    return [] if new == old else [invalid(path, new if shown is None else shown, IMMUTABLE)]
