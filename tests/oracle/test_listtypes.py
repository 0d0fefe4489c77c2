"""Lists that are sets or maps."""

from __future__ import annotations

from instar.schema.listtypes import compile_uniqueness, list_type_errors
from instar.schema.parse import structural
from tests.oracle.cases import Case, Outcome, assert_agreement, judge_errors


def judge(case: Case) -> Outcome:
    rule = compile_uniqueness(structural(case.ask["schema"]))
    return judge_errors(case, list_type_errors(rule, case.ask["object"]))


def test_list_types_as_upstream() -> None:
    assert_agreement("listtypes", judge)
