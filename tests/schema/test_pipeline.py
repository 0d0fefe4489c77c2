"""The one order of steps: what happens to an object on its way in, when checked, and out."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import instar
from instar.base.field_errors import FieldError, FieldErrorType, invalid
from instar.kube.api.crd import ScalePaths, read_crd
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.pipeline import (
    RULES_SKIPPED,
    STOPS_RULES,
    SchemaPipeline,
    pipeline_of,
    take_in_applied,
)
from instar.kube.schema.rule_engine import Program, RuleResult
from instar.kube.schema.structure.structural import Structural
from tests.support.sources import parsed

TEXT = {"type": "string"}
EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
SPEC = {
    "type": "object",
    "required": ["must"],
    "properties": {
        "must": TEXT,
        "short": {"type": "string", "maxLength": 3},
        "one": {"type": "string", "enum": ["a", "b"]},
        "few": {"type": "array", "maxItems": 1, "items": TEXT},
        "form": {"type": "string", "pattern": "^x"},
        "filled": {"type": "string", "default": "by default"},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "em": EMBEDDED,
        "loose": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
STATUS = {
    "type": "object",
    "properties": {
        "phase": TEXT,
        "em": EMBEDDED,
        "counts": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
SCALE = ScalePaths(".spec.loose.replicas", ".status.counts.replicas", ".status.counts.selector")


class Recorder:
    """Rules that find one thing wrong and remember what they were asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []

    def evaluate(self, new: Any, old: Any | None) -> RuleResult:
        self.asked.append((new, old))
        return RuleResult([invalid("spec", 0, "against the rules")], ["nearly against them"])


def pipeline(program: Program | None = None, **more: Any) -> SchemaPipeline:
    return SchemaPipeline(
        compile_schema(SCHEMA),
        api_version="ex.io/v1",
        kind="Foo",
        compile_rules=lambda _: program,
        **more,
    )


def obj(spec: Any = None, /, **members: Any) -> dict[str, Any]:
    filled = {"must": "be", **(spec or {})}
    head = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "a"}}
    return {**head, "spec": filled, **members}


def fields(errors: list[FieldError]) -> list[str]:
    return [error.field for error in errors]


def test_only_the_pipeline_puts_the_steps_in_order() -> None:
    steps = {
        "prune_reporting",
        "drop_nulls",
        "coerce_embedded",
        "embedded_errors",
        "list_type_errors",
        "validate_status",
    }
    root = Path(instar.__file__).parent

    callers = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr in steps
    }

    assert callers == {"kube/schema/pipeline.py"}


# --- in ----------------------------------------------------------------------------------------


def test_decoding_cleans_metadata_prunes_drops_nulls_coerces_and_defaults() -> None:
    em = {"apiVersion": "v1", "kind": "Pod", "metadata": {"zz": 1, "name": "p"}}
    sent = obj({"filled": None, "one": None, "b": 1, "em": em}, metadata={"name": "a", "yy": 1})
    sent["a"] = 1

    unknown = pipeline().decode(sent)

    assert unknown == ["metadata.yy", "a", "spec.b", "spec.em.metadata.zz"]
    kept_em = {**em, "metadata": {"name": "p"}}
    assert sent == obj({"filled": "by default", "em": kept_em})


def test_metadata_that_is_none_is_refused_when_decoded() -> None:
    with pytest.raises(MetaError, match=r"ObjectMeta\.labels"):
        pipeline().decode(obj(metadata={"labels": {"a": 1}}))


def test_an_embedded_resource_that_is_none_is_refused_when_decoded() -> None:
    with pytest.raises(MetaError, match=r"spec\.em\.kind"):
        pipeline().decode(obj({"em": {"kind": 1}}))


@pytest.mark.parametrize("other", [{"kind": "Bar"}, {"apiVersion": "ex.io/v2"}])
def test_of_another_kind_only_the_metadata_is_decoded(other: dict[str, str]) -> None:
    sent = {**obj({"zz": 1}, metadata={"yy": 1}), **other}

    unknown = pipeline().decode(sent)

    assert unknown == ["metadata.yy"]
    assert sent["spec"] == {"must": "be", "zz": 1}


def test_an_applied_object_keeps_its_nulls() -> None:
    merged = obj({"form": None, "zz": 1})

    take_in_applied(compile_schema(SCHEMA), merged)

    assert merged == obj({"form": None, "filled": "by default"})
    assert fields(pipeline().check_create(merged)) == ["spec.form"]


# --- out ---------------------------------------------------------------------------------------


def test_reading_from_storage_is_lenient_and_fills_in_defaults() -> None:
    em = {"apiVersion": 1, "kind": "Pod", "metadata": {"labels": 1, "name": "p"}}
    stored = obj({"zz": 1, "one": None, "em": em}, metadata={"name": "a", "labels": 5})

    pruned = pipeline().from_storage(stored)

    assert pruned == ["spec.zz"]
    kept_em = {"kind": "Pod", "metadata": {"name": "p"}}
    filled = obj({"filled": "by default", "em": kept_em})
    assert stored == {**filled, "metadata": {"name": "a", "generation": 1}}


def test_after_a_conversion_nothing_is_defaulted() -> None:
    converted = obj({"zz": 1, "one": None})

    pruned = pipeline().after_conversion(converted)

    assert pruned == ["spec.zz"]
    assert converted == obj()


def test_reading_needs_no_rules() -> None:
    def refuse(root: Structural) -> None:
        raise AssertionError("compiled for a read")

    reading = SchemaPipeline(
        compile_schema(SCHEMA), api_version="ex.io/v1", kind="Foo", compile_rules=refuse
    )

    reading.decode(obj())
    reading.from_storage(obj())
    reading.after_conversion(obj())


# --- checks ------------------------------------------------------------------------------------


def test_errors_are_in_upstreams_order() -> None:
    sent = obj(
        {
            "form": "y",
            "loose": {"replicas": "many"},
            "em": {"apiVersion": "v1", "kind": ""},
            "set": ["a", "a"],
        },
        metadata={"name": "A"},
    )

    found = pipeline(Recorder(), scale=SCALE).check_create(sent)

    assert fields(found) == [
        "metadata.name",
        "spec.form",
        ".spec.loose.replicas",
        "spec.em.kind",
        "spec.set[1]",
        "spec",
    ]


STOPPING: dict[FieldErrorType, dict[str, Any]] = {
    FieldErrorType.REQUIRED: {"must": None},
    FieldErrorType.TOO_LONG: {"short": "long"},
    FieldErrorType.NOT_SUPPORTED: {"one": "c"},
    FieldErrorType.TOO_MANY: {"few": ["a", "b"]},
    FieldErrorType.TYPE_INVALID: {"form": 1},
}


def test_each_kind_that_stops_the_rules_is_tried() -> None:
    assert set(STOPPING) == STOPS_RULES


@pytest.mark.parametrize("kind", STOPPING)
def test_rules_do_not_run_after_an_error_that_could_make_them_fail(kind: FieldErrorType) -> None:
    rules = Recorder()
    sent = obj({name: item for name, item in STOPPING[kind].items() if item is not None})
    if STOPPING[kind].get("must", "") is None:
        del sent["spec"]["must"]

    found = pipeline(rules).check_create(sent)

    assert (found[0].kind, found[1:]) == (kind, [RULES_SKIPPED])
    assert rules.asked == []


def test_a_missing_name_stops_the_rules_too() -> None:
    found = pipeline(Recorder()).check_create(obj(metadata={}))

    assert fields(found) == ["metadata.name", RULES_SKIPPED.field]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"form": "y"}, "spec.form"),
        ({"set": ["a", "a"]}, "spec.set[1]"),
        ({"loose": {"replicas": -1}}, ".spec.loose.replicas"),
    ],
)
def test_rules_run_after_any_other_error(spec: dict[str, Any], field: str) -> None:
    found = pipeline(Recorder(), scale=SCALE).check_create(obj(spec))

    assert fields(found) == [field, "spec"]


def test_without_rules_nothing_is_reported_as_skipped() -> None:
    assert fields(pipeline().check_create(obj({"one": "c"}))) == ["spec.one"]


def test_rules_see_the_object_before_an_update_and_may_warn() -> None:
    rules, warnings = Recorder(), list[str]()
    new, old = obj({"one": "a"}), obj()

    found = pipeline(rules).check_update(new, old, warn=warnings.append)

    assert fields(found) == ["spec"]
    assert rules.asked == [(new, old)]
    assert warnings == ["nearly against them"]


@pytest.mark.parametrize("other", [{"kind": "Bar"}, {"apiVersion": "ex.io/v2"}])
def test_of_another_kind_nothing_else_is_checked(other: dict[str, str]) -> None:
    sent = {**obj({"one": "c"}), **other}

    created, updated = pipeline().check_create(sent), pipeline().check_update(sent, obj())

    assert fields(created) == fields(updated) == list(other)


def test_an_update_is_forgiven_what_it_did_not_touch() -> None:
    old, new = obj({"one": "c"}), obj({"one": "c", "short": "long"})

    assert fields(pipeline().check_update(new, old)) == ["spec.short"]


def test_changed_metadata_is_reported_once_for_each_check_of_upstream() -> None:
    new = obj(metadata={"name": "a", "resourceVersion": "1", "labels": {"-": "x"}})
    old = obj(metadata={"name": "a", "resourceVersion": "1"})

    assert fields(pipeline().check_update(new, old)) == ["metadata.labels"] * 3


def test_finalizers_without_a_domain_are_advised_against_when_they_are_new() -> None:
    warnings = list[str]()
    kept = {"name": "a", "resourceVersion": "1"}
    old = obj(metadata={**kept, "finalizers": ["first"]})
    new = obj(metadata={**kept, "finalizers": ["first", "second", "orphan", "x.io/y"]})

    assert not pipeline().check_update(new, old, warn=warnings.append)

    assert [text.partition(": prefer")[0] for text in warnings] == ['metadata.finalizers: "second"']


# --- status ------------------------------------------------------------------------------------


def test_a_write_of_the_status_is_judged_by_the_status_alone() -> None:
    old = obj({"one": "c", "loose": {"replicas": -1}, "em": {}})
    new = {**old, "status": {"phase": 1, "counts": {"replicas": -2, "selector": 5}, "em": {}}}

    found = pipeline(scale=SCALE).check_update(new, old, status_only=True)

    assert fields(found) == [
        "status.phase",
        ".status.counts.replicas",
        ".status.counts.selector",
    ]
    assert "phase in body" in found[0].detail, "its texts begin at the status"


def test_a_status_without_an_endpoint_is_written_with_the_object() -> None:
    new, old = obj(status={"phase": "new"}), obj(status={"phase": "old"})

    pipeline().leave_status(new)
    pipeline().keep_status(new, old)

    assert new["status"] == {"phase": "new"}


def test_a_status_with_an_endpoint_is_neither_created_nor_updated() -> None:
    created, updated, bare = obj(status={}), obj(status={"phase": "new"}), obj(status={})
    apart = pipeline(has_status=True)

    apart.leave_status(created)
    apart.keep_status(updated, obj(status={"phase": "old"}))
    apart.keep_status(bare, obj())

    assert "status" not in created
    assert updated["status"] == {"phase": "old"}
    assert "status" not in bare


def test_only_a_status_left_out_reads_back_with_its_default() -> None:
    status = {**STATUS, "default": {"phase": "new"}}
    schema = compile_schema({"type": "object", "properties": {"spec": SPEC, "status": status}})
    apart = SchemaPipeline(schema, api_version="ex.io/v1", kind="Foo", has_status=True)
    together = SchemaPipeline(schema, api_version="ex.io/v1", kind="Foo")

    assert not apart.reads_alike(obj())
    assert apart.reads_alike(obj(status={}))
    assert together.reads_alike(obj())
    assert pipeline(has_status=True).reads_alike(obj())


# --- of a CRD ----------------------------------------------------------------------------------


def test_a_version_of_a_crd_is_all_it_takes() -> None:
    rule = {"rule": "self.must != 'not'", "message": "must not"}
    spec = {**SPEC, "x-kubernetes-validations": [rule]}
    crd = read_crd(
        {
            "spec": {
                "group": "ex.io",
                "names": {"kind": "Foo"},
                "versions": [
                    {
                        "name": "v1",
                        "schema": {
                            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}
                        },
                        "subresources": {
                            "status": {},
                            "scale": {
                                "specReplicasPath": ".spec.loose.replicas",
                                "statusReplicasPath": ".status.replicas",
                            },
                        },
                    }
                ],
            }
        }
    )

    made = pipeline_of(crd, crd.versions[0])
    found = made.check_create(obj({"must": "not", "loose": {"replicas": -1}}))

    assert made.has_status
    assert fields(found) == [".spec.loose.replicas", "spec"]
