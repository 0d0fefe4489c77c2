"""One schema, one or two objects: do they fit, what is in them, what differs, what is left."""

from __future__ import annotations

from instar.base.json_values import same_json
from instar.kube.apply.compare import compare
from instar.kube.apply.field_set import parse
from instar.kube.apply.merge import merge
from instar.kube.apply.owned_paths import owned_in_object
from instar.kube.apply.remove import remove_paths
from instar.kube.apply.validate import problems_text, type_problems
from tests.oracle.cases import Case, Outcome, assert_agreement
from tests.oracle.typed_schemas import typed_schema

UNASKABLE = {
    "apply-typed-2e3a2dbe36": "a scalar with a relationship; no CRD's schema is compiled to one",
}

EXCEPTIONS = {
    "apply-typed-9700db96d9": "of two undeclared fields upstream names either; we name the first",
}


def judge(case: Case) -> Outcome:
    return _CHECKS[case.ask["check"]](case)


def _validate(case: Case) -> Outcome:
    problems = type_problems(typed_schema(case.ask["schema"]), case.ask["object"])
    ours = problems_text(problems) if problems else None
    # The recording read YAML, where keys need not be strings; a request body is JSON by then.
    theirs = (case.answer["error"] or "").replace("map[interface {}]", "map[string]") or None
    return Outcome((ours is None) == (theirs is None), ours == theirs, ours)


def _field_set(case: Case) -> Outcome:
    ours = owned_in_object(typed_schema(case.ask["schema"]), case.ask["object"])
    return _same(ours, parse(case.answer["set"]))


def _merge(case: Case) -> Outcome:
    ours = merge(typed_schema(case.ask["schema"]), case.ask["object"], case.ask["other"])
    return _same(ours, case.answer["object"])


def _compare(case: Case) -> Outcome:
    found = compare(typed_schema(case.ask["schema"]), case.ask["object"], case.ask["other"])
    theirs = [parse(case.answer[name]) for name in ("added", "modified", "removed")]
    return _same(list(found), theirs)


def _remove(case: Case) -> Outcome:
    schema, paths = typed_schema(case.ask["schema"]), parse(case.ask["set"])
    # An object that lost everything is empty here: no object is without apiVersion.
    return _same(remove_paths(schema, case.ask["object"], paths) or None, case.answer["object"])


def _same(ours: object, theirs: object) -> Outcome:
    equal = same_json(ours, theirs)
    return Outcome(equal, equal, ours)


_CHECKS = {
    "validate": _validate,
    "fieldSet": _field_set,
    "merge": _merge,
    "compare": _compare,
    "remove": _remove,
}


def test_typed_values_as_upstream() -> None:
    assert_agreement("apply-typed", judge, EXCEPTIONS, UNASKABLE)
