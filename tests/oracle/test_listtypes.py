"""Lists that are sets or maps."""

from __future__ import annotations

from instar.kube.schema.structure.parse import structural
from instar.kube.schema.validation.list_types import compile_uniqueness, list_type_errors
from tests.oracle.cases import Case, Outcome, assert_agreement, judge_errors


def judge(case: Case) -> Outcome:
    rule = compile_uniqueness(structural(case.ask["schema"]))
    return judge_errors(case, list_type_errors(rule, case.ask["object"]))


def test_list_types_as_upstream() -> None:
    assert_agreement("listtypes", judge)
