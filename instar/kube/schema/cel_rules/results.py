"""Field errors and messages of failed CEL rules: field, value, text and reason.

Called by ``evaluate.py``.
"""

from __future__ import annotations

from typing import Any

from instar.base.field_errors import (
    NO_FIELD,
    OMITTED,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from instar.kube.schema.cel_rules.compile import RuleNode
from instar.kube.schema.structure.structural import Structural, ValidationRule

MAX_MESSAGE = 5 * 1024


def label(rule: ValidationRule) -> str:
    """Return a rule's name for errors about the rule itself."""
    return rule.message.strip() or rule.rule.strip()


def message_of(rule: ValidationRule) -> str:
    """Return the message of a failed rule: its own, or one with the rule's text."""
    return rule.message.strip() or f"failed rule: {rule.rule.strip()}"


def usable_message(text: Any) -> str | None:
    """Return the result of a messageExpression; None if upstream would ignore it."""
    if type(text) is not str:
        return None
    trimmed = text.strip()
    if not trimmed or "\n" in trimmed or len(trimmed.encode()) > MAX_MESSAGE:
        return None
    return trimmed


def failure(rule: ValidationRule, path: str, raw: Any, text: str) -> FieldError:
    """Return the error of a rule that evaluated to false."""
    field = path or NO_FIELD
    shown = OMITTED if isinstance(raw, (dict, list)) else raw
    match rule.reason:
        case "FieldValueForbidden":
            return forbidden(field, text)
        case "FieldValueRequired":
            return required(field, text)
        case "FieldValueDuplicate":
            return duplicate(field, shown)
    return invalid(field, shown, text)


def broken(node: RuleNode, path: str, text: str) -> FieldError:
    """Return the error of a rule that could not be evaluated; the shown value is the node's
    type."""
    return invalid(path or NO_FIELD, shown_type(node.schema), text)


def shown_type(schema: Structural) -> str:
    """Return the type as error messages name it; empty for int-or-string."""
    return "" if schema.int_or_string else schema.type
