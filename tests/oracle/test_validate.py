"""Schema validation without rules, on create and on update."""

from __future__ import annotations

from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.validation.validate import compile_validator
from tests.oracle.cases import Case, Outcome, assert_agreement, judge_errors


def judge(case: Case) -> Outcome:
    ask = case.ask
    validator = compile_validator(structural(ask["schema"]), resource=ask.get("isResource", False))
    errors = validator.validate(ask["object"], ask.get("oldObject", ABSENT))
    if "errors" in case.answer:
        return judge_errors(case, errors)
    equal = case.answer["valid"] == (not errors)
    return Outcome(equal, equal, [str(error) for error in errors])


def test_validation_as_upstream() -> None:
    assert_agreement("validate", judge)
