"""Static checks of ``x-kubernetes-validations``: blank texts, line breaks, reasons, field paths.

Called by ``schema_node.py`` for every schema node. Compilation and cost are checked in
``kube/schema/cel_rules/check.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from instar.base.field_errors import FieldError, child, index, invalid, not_supported, required
from instar.kube.schema.structure.field_path import PathProblem, resolve

Schema = Mapping[str, Any]

VALIDATIONS = "x-kubernetes-validations"
_REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_BLANK_TEXT = "must be non-empty if specified"
_LINE_BREAK_TEXT = "must not contain line breaks"


def rule_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Return the static errors of every rule on one node."""
    for position, rule in enumerate(schema.get(VALIDATIONS) or ()):
        at = index(child(path, VALIDATIONS), position)
        yield from _texts(rule, at)
        yield from _message_expression(rule, at)
        yield from _reason(rule, at)
        yield from _field_path(rule, schema, child(at, "fieldPath"))


def _texts(rule: Schema, at: str) -> Iterator[FieldError]:
    """Return at most one error, because after one the others are meaningless."""
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    shown = message.strip()
    if not text:
        yield required(child(at, "rule"), "rule is not specified")
    elif message and not shown:
        yield invalid(child(at, "message"), message, _BLANK_TEXT)
    elif _has_break(shown):
        yield invalid(child(at, "message"), message, _LINE_BREAK_TEXT)
    elif _has_break(text) and not shown:
        reason = "message must be specified if rule contains line breaks"
        yield required(child(at, "message"), reason)


def _message_expression(rule: Schema, at: str) -> Iterator[FieldError]:
    text = rule.get("messageExpression", "")
    if text and not text.strip():
        yield required(child(at, "messageExpression"), f"messageExpression {_BLANK_TEXT}")


def _reason(rule: Schema, at: str) -> Iterator[FieldError]:
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(child(at, "reason"), reason, _REASONS)


def _field_path(rule: Schema, schema: Schema, at: str) -> Iterator[FieldError]:
    path = rule.get("fieldPath", "")
    if not path:
        return
    if not path.strip():
        yield invalid(at, path, _BLANK_TEXT)
    if _has_break(path):
        yield invalid(at, path, _LINE_BREAK_TEXT)
    try:
        resolve(path, schema)
    except PathProblem:
        yield invalid(at, path, "must be a valid path")


def _has_break(text: str) -> bool:
    return "\n" in text or "\r" in text
