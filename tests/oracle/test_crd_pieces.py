"""Parts of a CRD: one schema, its structure, its metadata, the versions that were stored."""

from __future__ import annotations

from dataclasses import replace

from instar.base.field_errors import NO_FIELD
from instar.kube.crds.validation.options import ValidationOptions
from instar.kube.crds.validation.schema import schema_errors
from instar.kube.crds.validation.versions import stored_version_errors
from instar.kube.schema.cel_rules.lazy_engine import check_if_any
from instar.kube.schema.structure.structural_rules import completeness_errors, metadata_errors
from tests.oracle.cases import Case, Outcome, assert_agreement, judge_errors

UNASKABLE = {
    "crd-pieces-20ba24e578": "asked with an option that is off for every CRD: nested "
    "additionalProperties are refused before",
}


def judge(case: Case) -> Outcome:
    return _CHECKS[case.ask["check"]](case)


def _schema(case: Case) -> Outcome:
    given = case.ask["options"]
    options = ValidationOptions({"spec": {}}, None, "v1")
    options.structural = given.get("requireStructural", False)
    options.valid_types = given.get("requireValidTypes", False)
    options.atomic_sets = given.get("requireAtomicSets", False)
    options.sound_keys = given.get("requireMapKeysSound", False)
    options.allow_defaults = given.get("allowDefaults", False)
    options.pruned_defaults = True
    errors = schema_errors(
        case.ask["validation"],
        case.ask["path"],
        options,
        has_status=case.ask["statusSubresource"],
        unchanged=False,
        check_rules=check_if_any,
    )
    return judge_errors(case, errors)


def _stored_versions(case: Case) -> Outcome:
    crd = {
        "spec": {"versions": case.ask["versions"]},
        "status": {"storedVersions": case.ask["storedVersions"]},
    }
    return judge_errors(case, stored_version_errors(crd))


def _completeness(case: Case) -> Outcome:
    return judge_errors(case, completeness_errors(case.ask["schema"], ""))


def _metadata(case: Case) -> Outcome:
    found = metadata_errors(case.ask["schema"], "", root=case.ask["level"] == "root")
    return judge_errors(case, [replace(error, field=error.field or NO_FIELD) for error in found])


_CHECKS = {
    "schema": _schema,
    "storedVersions": _stored_versions,
    "completeness": _completeness,
    "metadataSchema": _metadata,
}


def test_parts_of_crds_are_judged_as_upstream() -> None:
    assert_agreement("crd-pieces", judge, left_out=UNASKABLE)
