"""Defaults filled in, and the nulls dropped before."""

from __future__ import annotations

from instar.base.json_values import copy_json, same_json
from instar.kube.schema.defaulting import compile_defaulter, compile_null_dropper
from instar.kube.schema.structure.parse import structural
from tests.oracle.cases import Case, Outcome, assert_agreement


def judge(case: Case) -> Outcome:
    schema, value = structural(case.ask["schema"]), copy_json(case.ask["object"])
    drops = case.ask["check"] == "dropNulls"
    step = compile_null_dropper(schema) if drops else compile_defaulter(schema)
    if step is not None and isinstance(value, dict | list):
        step(value)
    equal = same_json(value, case.answer["object"])
    return Outcome(equal, equal, value)


def test_defaults_as_upstream() -> None:
    assert_agreement("defaulting", judge)
