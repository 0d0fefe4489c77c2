"""Unknown fields dropped, and which they were."""

from __future__ import annotations

from instar.base.json_values import copy_json, same_json
from instar.kube.schema.pruning import compile_node, compile_pruner, dropped_paths
from instar.kube.schema.structure.parse import structural
from tests.oracle.cases import Case, Outcome, assert_agreement

UNASKABLE = {
    "pruning-7f8301ad8a": "dropped paths of a value that is no resource; the server asks for "
    "those of whole objects only",
}


def judge(case: Case) -> Outcome:
    schema, value = structural(case.ask["schema"]), copy_json(case.ask["object"])
    prune = compile_pruner(schema) if case.ask["isResource"] else compile_node(schema)
    dropped = dropped_paths(prune(value))
    verdict = same_json(value, case.answer["object"])
    theirs = case.answer["pruned"]
    return Outcome(verdict, verdict and (theirs is None or theirs == dropped), (value, dropped))


def test_pruning_as_upstream() -> None:
    assert_agreement("pruning", judge, left_out=UNASKABLE)
