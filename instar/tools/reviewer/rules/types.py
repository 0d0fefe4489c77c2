"""Review rules about the type and format of a value.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.kube.schema.formats.named import is_supported
from instar.tools.reviewer.changes import NodeChange
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.rule_kit import (
    CLIENTS,
    ERROR,
    INFO,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    FindingDraft,
    NodeCheck,
    ReviewRule,
    both,
    keywords,
)
from instar.tools.reviewer.types import admitted_types, type_name

RULES = (
    ReviewRule(
        "type-changed",
        ERROR,
        "values of the old type are refused",
        (WRITERS, READERS, STORED, CLIENTS),
    ),
    ReviewRule(
        "type-widened",
        WARNING,
        "more types are taken than before: readers and generated code meet new ones",
        (READERS, CLIENTS),
    ),
    ReviewRule("format-tightened", ERROR, "a format is demanded that was not", (WRITERS, STORED)),
    ReviewRule("format-loosened", INFO, "a format is no longer demanded", (READERS, CLIENTS)),
    ReviewRule("format-renamed", INFO, "a format the server does not enforce changed", (CLIENTS,)),
)

VALUE_KEYWORDS = frozenset(
    {"format", "enum", "pattern", "multipleOf", "uniqueItems", "required", "default", "anyOf"}
    | {"allOf", "oneOf", "not", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
    | {"additionalProperties", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
    | {"x-kubernetes-map-type", "x-kubernetes-validations", "x-kubernetes-embedded-resource"}
    | {"x-kubernetes-preserve-unknown-fields"}
)
"""Keywords that mean nothing across two types, so a change of type covers them."""

_NARROWER = {("int32", "int64"), ("float", "double")}


def type_changed(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = pair
    before, after = admitted_types(old), admitted_types(new)
    if before == after:
        return
    said = f"{type_name(old)} became {type_name(new)}"
    if before < after:
        yield FindingDraft(rule="type-widened", message=said, effect=Effect.ACCEPTED)
    else:
        yield FindingDraft(rule="type-changed", message=said, effect=Effect.REFUSED)


def format_changed(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None or not admitted_types(pair[0]) & admitted_types(pair[1]):
        return
    old, new = (str(node.get("format") or "") for node in pair)
    if old == new:
        return
    said = f"format {old or 'none'} became {new or 'none'}"
    enforced_old, enforced_new = bool(old) and is_supported(old), bool(new) and is_supported(new)
    if not enforced_old and not enforced_new:
        yield FindingDraft(rule="format-renamed", message=f"{said}; the server enforces neither")
    elif not enforced_new or (old, new) in _NARROWER:
        yield FindingDraft(rule="format-loosened", message=said, effect=Effect.ACCEPTED)
    else:
        yield FindingDraft(rule="format-tightened", message=said, effect=Effect.REFUSED)


CHECKS = (
    NodeCheck(keywords("type", "x-kubernetes-int-or-string"), type_changed),
    NodeCheck(keywords("format"), format_changed),
)
