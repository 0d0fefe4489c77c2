"""Parser from a CRD's JSONSchemaProps to ``Structural``.

Called by ``kube/schema/compiled.py`` for every schema that is served, by the CRD validation
(``kube/crds/validation/schema.py``), the CEL rules, mutating policies and the reviewer. The parser
never fails; ``structural_rules.py`` checks whether a schema is structural.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.kube.schema.structure.structural import Structural, ValidationRule


def structural(raw: Mapping[str, Any]) -> Structural:
    """Return the structural form of a schema; never raises."""
    return _node(raw)


def _node(raw: Mapping[str, Any]) -> Structural:
    items = raw.get("items")
    properties = raw.get("properties")
    list_type, map_type = raw.get("x-kubernetes-list-type"), raw.get("x-kubernetes-map-type")
    return Structural(
        type=_text(raw.get("type")),
        nullable=raw.get("nullable") is True,
        default=raw.get("default"),
        properties=_properties(properties) if isinstance(properties, Mapping) else {},
        items=_node(items) if isinstance(items, Mapping) else None,
        additional=_additional(raw.get("additionalProperties")),
        preserve_unknown=raw.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=raw.get("x-kubernetes-embedded-resource") is True,
        int_or_string=raw.get("x-kubernetes-int-or-string") is True,
        list_type=list_type if isinstance(list_type, str) else None,
        list_map_keys=_texts(raw.get("x-kubernetes-list-map-keys")),
        map_type=map_type if isinstance(map_type, str) else None,
        rules=_rules(raw.get("x-kubernetes-validations")),
        raw=raw,
    )


def _properties(raw: Mapping[str, Any]) -> dict[str, Structural]:
    return {
        str(name): _node(item if isinstance(item, Mapping) else {}) for name, item in raw.items()
    }


def _additional(raw: Any) -> Structural | bool | None:
    if isinstance(raw, Mapping):
        return _node(raw)
    return raw if isinstance(raw, bool) else None


def _rules(raw: Any) -> tuple[ValidationRule, ...]:
    if not isinstance(raw, list):
        return ()
    return tuple(_rule(item) for item in raw if isinstance(item, Mapping))


def _rule(raw: Mapping[str, Any]) -> ValidationRule:
    reason, optional = raw.get("reason"), raw.get("optionalOldSelf")
    return ValidationRule(
        rule=_text(raw.get("rule")),
        message=_text(raw.get("message")),
        message_expression=_text(raw.get("messageExpression")),
        reason=reason if isinstance(reason, str) else None,
        field_path=_text(raw.get("fieldPath")),
        optional_old_self=optional if isinstance(optional, bool) else None,
    )


def _text(raw: Any) -> str:
    return raw if isinstance(raw, str) else ""


def _texts(raw: Any) -> tuple[str, ...]:
    return tuple(item for item in raw if isinstance(item, str)) if isinstance(raw, list) else ()
