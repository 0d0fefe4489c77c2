"""Whole CRDs, created and updated."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.api.crd_codec import decode, to_internal
from instar.kube.crds.defaults import with_defaults
from instar.kube.crds.format_warnings import format_warnings
from instar.kube.crds.strategy import prepare_for_create, prepare_for_update
from instar.kube.crds.validation.crd import validate_create
from instar.kube.crds.validation.update import validate_update
from instar.kube.schema.cel_rules.lazy_engine import check_if_any
from tests.oracle.cases import Case, Outcome, assert_agreement, judge_errors


def judge(case: Case) -> Outcome:
    new, past = _internal(case.ask["crd"]), case.ask.get("old")
    if past is None:
        old = None
        new = prepare_for_create(new)
        errors = validate_create(new, check_rules=check_if_any)
    else:
        old = _internal(past)
        new = prepare_for_update(new, old)
        errors = validate_update(new, old, check_rules=check_if_any)
    warnings = [] if errors else format_warnings(new, old)
    outcome = judge_errors(case, errors)
    exact = outcome.exact and sorted(warnings) == sorted(case.answer["warnings"])
    return outcome._replace(exact=exact, ours=(outcome.ours, warnings))


def _internal(crd: Object) -> Object:
    return to_internal(with_defaults(decode(crd, "v1").obj))


def test_crds_are_judged_as_upstream() -> None:
    assert_agreement("crd-validation", judge)
