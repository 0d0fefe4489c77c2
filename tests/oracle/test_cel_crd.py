"""The same from outside: a CRD with rules is created, then an object of it."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object, copy_json
from instar.kube.api.crd_codec import decode, to_internal
from instar.kube.crds.defaults import with_defaults
from instar.kube.crds.format_warnings import format_warnings
from instar.kube.crds.strategy import prepare_for_create
from instar.kube.crds.validation.crd import validate_create
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.kube.schema.cel_rules.lazy_engine import check_if_any
from instar.kube.schema.compiled import ABSENT, compile_schema
from tests.oracle.cases import Case, Outcome, assert_agreement, error_rows, recorded_rows
from tests.support import crds


def judge(case: Case) -> Outcome:
    ask, answer = case.ask, case.answer
    schema = {"type": "object", "properties": {"spec": ask["schema"]}}
    crd = prepare_for_create(to_internal(with_defaults(decode(_crd(schema), "v1").obj)))
    errors = validate_create(crd, check_rules=check_if_any)
    ours, theirs = error_rows(errors), recorded_rows(answer["crdErrors"])
    verdict, exact = bool(ours) == bool(theirs), ours == theirs
    shown: list[Any] = [sorted(ours.elements())]
    if not errors and "objectErrors" in answer:
        found = error_rows(_object_errors(schema, ask))
        recorded = recorded_rows(answer["objectErrors"])
        shown.append(sorted(found.elements()))
        verdict, exact = verdict and bool(found) == bool(recorded), exact and found == recorded
    if not errors:
        exact = exact and format_warnings(crd, None) == answer["crdWarnings"]
    return Outcome(verdict, exact, shown)


def _object_errors(schema: Object, ask: Object) -> list[Any]:
    compiled = compile_schema(schema)
    new = _object(compiled, ask["object"])
    old: Any = _object(compiled, ask["oldObject"]) if "oldObject" in ask else ABSENT
    found = (
        compiled.validate(new, old)
        + compiled.embedded_errors(new)
        + compiled.list_type_errors(new, old)
    )
    program = compile_rules(compiled.structural)
    if not found and program is not None:
        found = program.evaluate(new, None if old is ABSENT else old).errors
    return found


def _object(compiled: Any, spec: Any) -> Object:
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": copy_json(spec),
    }
    compiled.prune(obj)
    compiled.drop_nulls(obj)
    compiled.coerce_embedded(obj, lenient=False)
    compiled.default(obj)
    return obj


def _crd(schema: Object) -> Object:
    names = {"singular": "thing", "listKind": "ThingList"}
    return crds.crd(crds.version("v1", schema), plural="things", kind="Thing", names=names)


def test_rules_of_a_crd_as_upstream() -> None:
    assert_agreement("cel-crd", judge)
