"""Groups of review rules that call for the same action.

``advice.py``, ``checklist.py``, ``field_use.py`` and ``plan.py`` use them.
"""

from __future__ import annotations

FIELD_REMOVALS = ("field-removed", "field-renamed", "field-moved")
VALUE_LOSSES = (*FIELD_REMOVALS, "type-changed")
VERSION_REMOVALS = ("version-removed", "version-unserved")
DEFAULT_CHANGES = ("default-changed", "default-removed")
LIST_TYPE_CHANGES = ("list-type-changed", "list-map-keys-changed")
BOUNDS_TIGHTEN = (
    "format-tightened",
    "multiple-of-tightened",
    "minimum-tightened",
    "maximum-tightened",
    "min-length-tightened",
    "max-length-tightened",
    "min-items-tightened",
    "max-items-tightened",
    "min-properties-tightened",
    "max-properties-tightened",
    "any-of-tightened",
    "one-of-tightened",
    "all-of-tightened",
    "not-tightened",
)
BOUNDS_LOOSEN = (
    "format-loosened",
    "multiple-of-loosened",
    "minimum-loosened",
    "maximum-loosened",
    "min-length-loosened",
    "max-length-loosened",
    "min-items-loosened",
    "max-items-loosened",
    "min-properties-loosened",
    "max-properties-loosened",
    "any-of-loosened",
    "one-of-loosened",
    "all-of-loosened",
    "not-loosened",
)
VALUES_SHRINK = ("enum-added", "enum-value-removed", "pattern-added", "nullable-removed")
RULES_TIGHTEN = ("rule-added", "rule-changed")
NAMES_CHANGE = (
    "short-name-removed",
    "short-name-added",
    "singular-changed",
    "category-removed",
    "category-added",
)
