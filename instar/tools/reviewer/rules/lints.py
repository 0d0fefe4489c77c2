"""Lints: patterns of one CRD that make its next change dangerous.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from instar.kube.crds.strategy import prepare_for_create, prepare_for_update
from instar.kube.crds.validation.crd import validate_create
from instar.kube.crds.validation.update import validate_update
from instar.kube.schema.cel_rules.check import check_rules
from instar.tools.reviewer.changes import Steps, children, value_path
from instar.tools.reviewer.report import Hit, pointer_of
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import (
    ERROR,
    INFO,
    OFF,
    WARNING,
    WRITERS,
    FindingDraft,
    ReviewRule,
)

RULES = (
    ReviewRule("crd-refused", ERROR, "the API server refuses this CRD", (WRITERS,)),
    ReviewRule("unknown-crd-field", WARNING, "the API server ignores a part of the CRD: a typo?"),
    ReviewRule(
        "unpruned-crd",
        WARNING,
        "spec.preserveUnknownFields: anything is stored, nothing outside the schema is checked",
        (Hit.STORED, Hit.CLIENTS),
    ),
    ReviewRule(
        "open-root",
        WARNING,
        "the root keeps unknown fields: typing mistakes are stored, the schema cannot evolve",
        (Hit.STORED, Hit.CLIENTS),
    ),
    ReviewRule(
        "open-field", INFO, "a field keeps unknown content: nothing checks it", (Hit.CLIENTS,)
    ),
    ReviewRule(
        "open-embedded-resource",
        INFO,
        "an embedded resource keeps unknown content: only apiVersion, kind and metadata are "
        "checked",
        (Hit.CLIENTS,),
    ),
    ReviewRule(
        "status-without-subresource",
        WARNING,
        "the schema has a status but the version no status subresource",
        (WRITERS,),
    ),
    ReviewRule(
        "list-type-missing", INFO, "a list without a list type is owned whole", (Hit.APPLIERS,)
    ),
    ReviewRule(
        "conditions-shape",
        INFO,
        "conditions are not a map list keyed by type",
        (Hit.APPLIERS, Hit.CLIENTS),
    ),
    ReviewRule("field-boolean", OFF, "a boolean cannot grow a third value", (Hit.CLIENTS,)),
    ReviewRule(
        "field-float", OFF, "floating point numbers differ between languages", (Hit.CLIENTS,)
    ),
    ReviewRule("field-uint", OFF, "unsigned integers do not exist in the API", (Hit.CLIENTS,)),
    ReviewRule("field-map", OFF, "a map cannot be merged by key like a list can", (Hit.CLIENTS,)),
)

_PRESERVE, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
_CLAIMED_ELSEWHERE = ("spec.scope", "spec.names.kind", "status.storedVersions")


def validation_errors(old: ReviewedCrd | None, new: ReviewedCrd) -> Iterator[FindingDraft]:
    """Report the errors of the server's own validation, with the ratcheting that it applies to
    updates.
    """
    version = str(new.given.get("apiVersion", "")).rpartition("/")[2]
    if old is None:
        prepared = prepare_for_create(new.internal)
        errors = validate_create(prepared, version=version, check_rules=check_rules)
    else:
        prepared = prepare_for_update(new.internal, old.internal)
        errors = validate_update(prepared, old.internal, version=version, check_rules=check_rules)
    said: Counter[tuple[str, str]] = Counter()
    for error in errors:
        if old is not None and error.field.startswith(_CLAIMED_ELSEWHERE):
            continue
        said[error.field, error.kind] += 1
        yield FindingDraft(
            rule="crd-refused",
            path=error.field,
            key=f"{error.kind}-{said[error.field, error.kind]}",
            pointer=pointer_of(error.field),
            message=error.body(),
            why_no_witness="the CRD itself is refused",
        )


def unknown_crd_fields(side: ReviewedCrd) -> Iterator[FindingDraft]:
    for path in side.unknown:
        yield FindingDraft(
            rule="unknown-crd-field",
            path=path,
            pointer=pointer_of(path),
            message="the API server knows no such field and drops it",
        )


def unpruned_crd(side: ReviewedCrd) -> Iterator[FindingDraft]:
    if side.crd.preserve_unknown:
        yield FindingDraft(
            rule="unpruned-crd",
            path="spec.preserveUnknownFields",
            pointer=("spec", "preserveUnknownFields"),
            message="set it to false and describe every field; keep single open fields where "
            "content really is arbitrary",
        )


def schema_lints(side: ReviewedCrd) -> Iterator[FindingDraft]:
    for version in side.crd.versions:
        schema = side.schemas[version.name]
        if "status" in (schema.get("properties") or {}) and not version.has_status:
            yield FindingDraft(
                rule="status-without-subresource",
                version=version.name,
                path="status",
                pointer=side.schema_pointer(version.name, ("properties", "status")),
                message="users can write it and controllers cannot write it separately",
            )
        for steps, node in _walk((), schema):
            for rule, message in _judge(steps, node):
                yield FindingDraft(
                    rule=rule,
                    version=version.name,
                    path=value_path(steps),
                    pointer=side.schema_pointer(version.name, steps),
                    message=message,
                )


def _walk(steps: Steps, node: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    yield steps, node
    for step, below in children(node).items():
        yield from _walk((*steps, *step), below)


def _judge(steps: Steps, node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if node.get(_PRESERVE):
        if not steps:
            yield "open-root", "unknown fields are kept at the root"
        elif node.get(_EMBEDDED):
            yield "open-embedded-resource", "only apiVersion, kind and metadata are checked"
        else:
            yield "open-field", "unknown content is kept and unchecked"
    kind = node.get("type")
    if kind == "array":
        yield from _list(steps, node)
    elif kind == "boolean":
        yield "field-boolean", "an enum of strings can grow"
    elif kind == "number":
        yield "field-float", "a scaled integer or a quantity is exact"
    elif kind == "object" and "additionalProperties" in node:
        yield "field-map", "a list of named objects merges by key"
    if str(node.get("format") or "").startswith("uint"):
        yield "field-uint", f"format {node['format']}"


def _list(steps: Steps, node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    keys = node.get("x-kubernetes-list-map-keys")
    if steps[-1:] == ("conditions",) and keys != ["type"]:
        yield "conditions-shape", "should be a map list with the key type"
    elif "x-kubernetes-list-type" not in node:
        yield "list-type-missing", "the manager that applies it owns the whole list"


LINTS = (unknown_crd_fields, unpruned_crd, schema_lints)
