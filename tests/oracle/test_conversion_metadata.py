"""What a conversion webhook may do to metadata."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import same_json
from instar.wire.conversion.contract import BrokenContract, restored_metadata
from tests.oracle.cases import Case, Outcome, assert_agreement


def judge(case: Case) -> Outcome:
    original, converted = case.ask["original"], case.ask["converted"]
    ours: Any
    try:
        ours, problem = {**converted, "metadata": restored_metadata(original, converted)}, None
    except BrokenContract as broken:
        ours, problem = None, broken.text
    theirs = case.answer.get("error")
    verdict = (problem is None) == (theirs is None)
    exact = problem == theirs and same_json(ours, case.answer.get("object"))
    return Outcome(verdict, exact, problem or ours)


def test_restored_metadata_as_upstream() -> None:
    assert_agreement("conversion-metadata", judge)
