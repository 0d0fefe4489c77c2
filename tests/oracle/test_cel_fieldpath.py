"""A rule's ``fieldPath`` and the path of a selectable field, read against a schema."""

from __future__ import annotations

from instar.kube.schema.structure.field_path import PathProblem, resolve
from tests.oracle.cases import Case, Outcome, assert_agreement


def judge(case: Case) -> Outcome:
    ask = case.ask
    try:
        normal, problem = (
            resolve(ask["path"], ask["schema"], keys=ask["bracketsAllowed"]).normal,
            None,
        )
    except PathProblem as found:
        normal, problem = None, str(found)
    verdict = (problem is None) == (case.answer["error"] is None)
    ours = {"error": problem, "normal": normal}
    return Outcome(verdict, ours == case.answer, ours)


def test_field_paths_as_upstream() -> None:
    assert_agreement("cel-fieldpath", judge)
