"""Uniqueness of ``x-kubernetes-list-type`` sets and maps: no duplicate items.

Called through ``compiled.py``. On update the check is skipped if the old object already has a
duplicate anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from instar.base.field_errors import FieldError, child, duplicate, index, invalid, key
from instar.kube.schema.json_types import ABSENT, in_key_order
from instar.kube.schema.structure.structural import Structural

Uniqueness = Callable[[Any, str], list[FieldError]]
"""(value, path) -> errors"""


def compile_uniqueness(node: Structural) -> Uniqueness | None:
    """Compile the check; None when no list below this node needs it."""
    known = {name: compile_uniqueness(item) for name, item in node.properties.items()}
    rules = {name: rule for name, rule in known.items() if rule is not None}
    additional = node.additional if isinstance(node.additional, Structural) else None
    other = None if additional is None else compile_uniqueness(additional)
    items = None if node.items is None else compile_uniqueness(node.items)
    own = _rule(node)
    if not rules and other is None and items is None and own is None:
        return None

    def check(value: Any, path: str) -> list[FieldError]:
        found: list[FieldError] = []
        if type(value) is list:
            if own is not None:
                found.extend(own(value, path))
            if items is not None:
                for position, item in enumerate(value):
                    found.extend(items(item, index(path, position)))
        elif type(value) is dict:
            for name, item in value.items():
                if other is not None:
                    found.extend(other(item, key(path, name)))
                if name in rules:
                    found.extend(rules[name](item, child(path, name)))
        return found

    return check


def list_type_errors(rule: Uniqueness | None, new: Any, old: Any = ABSENT) -> list[FieldError]:
    """Return the errors of the new object, unless the old one had errors, too."""
    found = rule(new, "") if rule is not None else []
    if found and rule is not None and old is not ABSENT and rule(old, ""):
        return []
    return found


def _rule(node: Structural) -> Uniqueness | None:
    if node.list_type == "set":
        return _set_errors
    if node.list_type == "map":
        return lambda value, path: _map_errors(node.list_map_keys, value, path)
    return None


def _set_errors(value: list[Any], path: str) -> list[FieldError]:
    return [
        duplicate(index(path, position), in_key_order(value[position]))
        for position in _repeats(value)
    ]


def _map_errors(names: tuple[str, ...], value: list[Any], path: str) -> list[FieldError]:
    for position, item in enumerate(value):
        if item is not None and type(item) is not dict:
            detail = "must be an object for an array of list-type map"
            return [invalid(index(path, position), in_key_order(item), detail)]
    keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
    return [
        duplicate(index(path, position), in_key_order(keys[position]))
        for position in _repeats(keys)
    ]


def _repeats(values: list[Any]) -> list[int]:
    """Return positions of second occurrences; third and later ones are not reported."""
    seen: dict[Any, int] = {}
    found = []
    for position, value in enumerate(values):
        identity = _identity(value)
        times = seen.get(identity, 0)
        seen[identity] = times + 1
        if times == 1:
            found.append(position)
    return found


def _identity(value: Any) -> Any:
    """Return a hashable key that keeps 1, 1.0 and true apart, as Go does."""
    if type(value) is dict or type(value) is list:
        return json.dumps(value, sort_keys=True)
    return (value.__class__, value)
