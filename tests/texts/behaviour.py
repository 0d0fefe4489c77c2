"""What instar does, without a word of what it says: kinds, places, codes, verdicts, effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from instar.base.field_errors import FieldError
from instar.base.json_values import Object, copy_json
from instar.kube.crds.validation.crd import validate_create
from instar.kube.crds.validation.update import validate_update
from instar.kube.schema.cel_rules.check import check_rules
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.metadata.embedded_resources import EmbeddedError
from instar.kube.schema.metadata.types import MetaError
from instar.testing import check_converter
from instar.tools.reviewer.report import CrdReview, Finding, ObjectVerdict
from instar.tools.reviewer.reviewing import review
from instar.wire.conversion import contract
from tests.crds.make import created, internal
from tests.crds.test_validate_schema import CASES
from tests.crds.test_validate_update import FORGIVEN
from tests.reviewer.golden import cases, review_folder, sides_of
from tests.sdk import planted
from tests.support.crds import crd, version

Facts = Any


def of_errors(errors: Iterable[FieldError]) -> list[Facts]:
    return [(error.kind, error.field, error.path, error.code) for error in errors]


def of_crds() -> Facts:
    """The rules for CRDs, on create and on update, with what the past forgives."""
    found: dict[str, Facts] = {name: _created(obj) for name, obj, _ in CASES}
    found |= {f"forgiven {at}": _updated(*pair) for at, pair in enumerate(FORGIVEN)}
    for name in cases():
        old, new = sides_of(name)
        found[name] = _created(new), _updated(old, new)
    return found


def _created(obj: Object) -> Facts:
    return of_errors(validate_create(created(obj), check_rules=check_rules))


def _updated(old: Object, new: Object) -> Facts:
    errors = validate_update(internal(new), created(old), check_rules=check_rules)
    return of_errors(errors)


_EMBEDDED = {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "any": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
        | {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        "one": {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 5}]},
        "all": {"type": "integer", "allOf": [{"minimum": 3}, {"multipleOf": 2}]},
        "not": {"type": "string", "not": {"pattern": "^x"}},
        "set": {
            "type": "array",
            "items": {"type": "string", "maxLength": 3},
            "x-kubernetes-list-type": "set",
        },
        "thing": {"type": "object", **_EMBEDDED},
        "ruled": {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "self > 3", "message": "too small"},
                {"rule": "self >= oldSelf", "messageExpression": "'below ' + string(oldSelf)"},
                {"rule": "10 / self > 0"},
            ],
        },
    },
}
_VALUES: tuple[Object, ...] = (
    {"any": {}, "one": 4, "all": 1, "not": "xa", "set": ["a", "a", "long"]},
    {"any": {"a": 1}, "one": "4", "all": None, "set": {}},
    {"ruled": 0},
    {"ruled": 2},
    {"ruled": 12},
    {"thing": {}},
    {"thing": {"apiVersion": "a/b/c", "kind": "Über", "metadata": {"name": "a/b", "labels": {}}}},
    {"thing": {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a": 1}}}},
    {"thing": {"apiVersion": "v1", "kind": "A", "metadata": {"creationTimestamp": "2024-13-01"}}},
)


def of_objects() -> Facts:
    """Schemas on objects: created, and updated from an object that was wrong already."""
    schema, program = compile_schema(_SCHEMA), compile_rules(compile_schema(_SCHEMA).structural)
    assert program is not None
    found = []
    for value in _VALUES:
        obj: Object = copy_json(value)
        try:
            dropped: Facts = schema.coerce_embedded(obj, lenient=False)
        except EmbeddedError as error:
            dropped = of_errors([error.error])
        except MetaError:
            dropped = "undecodable"
        results = [
            (
                of_errors(schema.validate(obj, old)),
                of_errors(schema.embedded_errors(obj)),
                of_errors(schema.list_type_errors(obj, old)),
                of_errors((ruled := program.evaluate(obj, old)).errors),
                len(ruled.warnings),
            )
            for old in ({}, _VALUES[0], _VALUES[3], copy_json(obj))
        ]
        found.append((dropped, results))
    return found


def of_reviews() -> Facts:
    """Every golden change: findings, witnesses, plan, checklist, stored objects, exit code."""
    found: dict[str, Facts] = {}
    for name in cases():
        report = review_folder(name)
        found[name] = [_reviewed(item) for item in report.crds], report.exit_code()
    whole = review(*([side[at] for side in map(sides_of, cases()[:5])] for at in (0, 1)))
    found["library"] = whole.only_old, whole.only_new, len(whole.problems), whole.exit_code()
    narrowed = review(_with_unit(maximum=9), _with_unit(maximum=5))
    assert narrowed.findings[0].witness is not None
    found["repaired"] = [_reviewed(item) for item in narrowed.crds]
    unusable = review(None, {"kind": "CustomResourceDefinition"})
    found["unusable"] = len(unusable.problems), unusable.exit_code()
    return found


def _with_unit(**size: int) -> Object:
    """A witness of its size needs another field, which only an error without a field tells."""
    spec = {
        "type": "object",
        "not": {"allOf": [{"required": ["size"]}, {"not": {"required": ["unit"]}}]},
        "properties": {"unit": {"type": "string"}, "size": {"type": "integer", **size}},
    }
    return crd(version(schema={"type": "object", "properties": {"spec": spec}}))


def _reviewed(item: CrdReview) -> Facts:
    return {
        "findings": [_finding(each) for each in item.findings],
        "suppressed": [each.fingerprint for each in item.suppressed],
        "plan": [(step.release, step.rewrites, len(step.commands)) for step in item.plan],
        "checklist": [each.yes for each in item.checklist],
        "stored": [(each.name, each.damage, len(each.reasons)) for each in item.stored],
    }


def _finding(item: Finding) -> Facts:
    witness = item.witness
    facts = item.rule, item.severity, item.version, item.path, item.fingerprint, item.hits
    shown = None
    if witness is not None:
        shown = witness.effect, witness.object, _verdict(witness.old), _verdict(witness.new)
    return *facts, item.pointer, shown, bool(item.unwitnessed)


def _verdict(verdict: ObjectVerdict) -> Facts:
    errors = [error for error in verdict.errors if isinstance(error, FieldError)]
    return verdict.accepted, of_errors(errors), verdict.pruned, verdict.result


def of_checks() -> Facts:
    """Which laws planted converters break, and with what."""
    found: dict[str, Facts] = {}
    for name in ("good", "drops_a_field"):
        report = check_converter(planted.CRD, getattr(planted, name), examples=15)
        found[name] = (
            report.exit_code,
            [
                (item.law, item.source, item.target, item.verdict, _inputs(item.counterexample))
                for item in report.outcomes
            ],
        )
    return found


def _inputs(counterexample: Any) -> Facts:
    return None if counterexample is None else counterexample.inputs


_ORIGINAL: Object = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": "b", "uid": "c"},
}
_ANSWERS: tuple[Sequence[Any], ...] = (
    [],
    [None],
    [{}],
    [{**_ORIGINAL}],
    [{**_ORIGINAL, "apiVersion": "example.com/v2", "kind": "Other"}],
    [{**_ORIGINAL, "apiVersion": "example.com/v2", "metadata": {"name": "other"}}],
    [{"apiVersion": "example.com/v2", "kind": "Widget"}],
    [
        {
            **_ORIGINAL,
            "apiVersion": "example.com/v2",
            "metadata": {**_ORIGINAL["metadata"], "labels": {"": "!"}},
        }
    ],
)


def of_contract() -> Facts:
    """How far each bad answer of a webhook comes."""
    found: list[Facts] = []
    for answer in _ANSWERS:
        try:
            found.append(contract.accept_all([_ORIGINAL], answer, "example.com/v2"))
        except contract.BrokenContract as broken:
            found.append((broken.stage, broken.index, broken.stage.failure_type))
    return found
