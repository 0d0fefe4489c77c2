"""Metadata read, made to fit and judged; mostly random."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import copy_json, same_json
from instar.kube.schema.metadata.embedded_resources import (
    as_resource,
    compile_coercer,
    compile_judge,
)
from instar.kube.schema.metadata.object_meta import coerce_metadata, drop_malformed
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from tests.oracle.cases import Case, Outcome, assert_agreement, judge_errors


def judge(case: Case) -> Outcome:
    return _CHECKS[case.ask["check"]](case)


def _read(case: Case) -> Outcome:
    metadata = copy_json(case.ask["object"]).get("metadata")
    if case.ask["dropMalformed"]:
        return _same_metadata(case, drop_malformed(metadata), None)
    try:
        clean, unknown = coerce_metadata(metadata)
    except MetaError as error:
        refused = case.answer["error"] is not None
        return Outcome(refused, refused and str(error) in case.answer["error"], str(error))
    return _same_metadata(case, clean, unknown)


def _same_metadata(case: Case, clean: dict[str, Any], unknown: list[str] | None) -> Outcome:
    accepted = case.answer["error"] is None
    same = accepted and same_json(_shown(clean), _shown(case.answer["metadata"]))
    return Outcome(same, same and (unknown or None) == (case.answer["unknown"] or None), clean)


def _shown(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if value is not None}


def _schema(case: Case) -> Structural:
    root = structural(case.ask["schema"])
    return as_resource(root) if case.ask["isResource"] else root


def _coerce(case: Case) -> Outcome:
    value, unknown = copy_json(case.ask["object"]), list[str]()
    coerce = compile_coercer(_schema(case))
    try:
        if coerce is not None:
            coerce(value, "", case.ask["dropInvalid"], unknown)
    except MetaError as error:
        refused = case.answer["error"] is not None
        return Outcome(refused, str(error) == case.answer["error"], str(error))
    verdict = case.answer["error"] is None and same_json(value, case.answer["object"])
    return Outcome(verdict, verdict and sorted(unknown) == sorted(case.answer["unknown"]), value)


def _validate(case: Case) -> Outcome:
    rule = compile_judge(_schema(case))
    return judge_errors(case, rule(case.ask["object"], "") if rule is not None else ())


_CHECKS = {"read": _read, "coerce": _coerce, "validate": _validate}


def test_metadata_as_upstream() -> None:
    assert_agreement("objectmeta", judge)
