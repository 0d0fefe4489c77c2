"""Whole requests without a server: create, update, and the status through its own endpoint."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.offline_requests import as_new, create, update
from instar.kube.schema.pipeline import SchemaPipeline

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "string", "enum": ["s", "l"], "default": "s"},
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}],
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string", "enum": ["up", "down"]},
                "seen": {
                    "type": "integer",
                    "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "less"}],
                },
            },
        },
    },
}


def pipeline(schema: dict[str, Any] = SCHEMA, *, has_status: bool = True) -> SchemaPipeline:
    compiled = compile_schema(schema)
    return SchemaPipeline(compiled, api_version="ex.io/v1", kind="Foo", has_status=has_status)


def foo(**members: Any) -> dict[str, Any]:
    head = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "a"}}
    return {**head, "spec": {}, **members}


def test_an_accepted_object_is_returned_as_it_would_be_stored() -> None:
    sent = foo(spec={"zz": 1}, status={"phase": "up"})
    before = deepcopy(sent)

    answer = create(pipeline(), sent)

    assert answer.accepted
    assert answer.refusals == []
    assert answer.obj == foo(spec={"size": "s"}, status={"phase": "up"})
    assert answer.unknown == ["spec.zz"]
    assert sent == before, "the argument is left alone"


def test_an_undecodable_body_is_refused_with_its_reason() -> None:
    answer = create(pipeline(), foo(metadata=["a"]))

    assert not answer.accepted
    assert answer.refusals == [str(answer.undecodable)]
    assert "ObjectMeta" in answer.refusals[0]


def test_the_status_is_judged_by_a_request_of_its_own() -> None:
    apart = create(pipeline(), foo(status={"phase": 1})).refusals[0]
    whole = create(pipeline(has_status=False), foo(status={"phase": 1})).refusals[0]

    assert apart.partition(" in body")[0] == 'status.phase: Invalid value: "integer": phase'
    assert whole.partition(" in body")[0] == 'status.phase: Invalid value: "integer": status.phase'


def test_a_status_is_not_sent_after_a_refused_object() -> None:
    refused = create(pipeline(), foo(spec={"size": "m"}, status={"phase": "odd"})).refusals

    assert [text.partition(":")[0] for text in refused] == ["spec.size", "<nil>"]


def test_a_required_status_with_an_endpoint_can_never_be_created() -> None:
    answer = create(pipeline({**SCHEMA, "required": ["status"]}), foo(status={"phase": "up"}))

    assert answer.refusals[0] == "status: Required value"


def test_a_default_of_the_status_is_what_the_second_request_starts_from() -> None:
    schema = deepcopy(SCHEMA)
    schema["properties"]["status"]["default"] = {"seen": 5}

    assert create(pipeline(schema), foo(status={"seen": 6})).accepted
    assert create(pipeline(schema), foo(status={"seen": 4})).refusals == [
        "status.seen: Invalid value: 4: less"
    ]


def test_a_server_generated_name_does_not_count_as_missing() -> None:
    metadata = {"generateName": "a" * 250 + "-"}

    assert create(pipeline(), foo(metadata=metadata)).accepted
    assert not create(pipeline(), foo(metadata={})).accepted
    assert len(as_new(foo(metadata=metadata))["metadata"]["name"]) == 63


def test_metadata_only_the_server_writes_is_not_judged() -> None:
    written = {"name": "a", "generation": -1, "uid": "u", "resourceVersion": "x"}

    answer = create(pipeline(), foo(metadata=written))

    assert answer.accepted
    assert answer.obj["metadata"] == written


def test_an_update_is_forgiven_what_was_wrong_before() -> None:
    old = foo(spec={"size": "m"}, status={"phase": "odd"})

    untouched = update(pipeline(), {**old, "metadata": {"name": "a", "labels": {"x": "y"}}}, old)
    touched = update(pipeline(), foo(spec={"size": "n"}, status={"phase": "odd"}), old)

    assert untouched.accepted
    assert [text.partition(":")[0] for text in touched.refusals] == ["spec.size", "<nil>"]


def test_transition_rules_hold_in_both_requests_of_an_update() -> None:
    old = foo(spec={"fixed": "a"}, status={"seen": 5})

    spec = update(pipeline(), foo(spec={"fixed": "b"}, status={"seen": 5}), old)
    status = update(pipeline(), foo(spec={"fixed": "a"}, status={"seen": 4}), old)

    assert spec.refusals == ['spec.fixed: Invalid value: "b": fixed']
    assert status.refusals == ["status.seen: Invalid value: 4: less"]


def test_an_update_may_remove_the_status() -> None:
    assert update(pipeline(), foo(), foo(status={"seen": 5})).accepted


def test_an_update_carries_on_what_the_server_wrote() -> None:
    old = foo(metadata={"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"})

    assert update(pipeline(), foo(), old).accepted
    assert update(pipeline(), foo(metadata={"name": "b"}), old).refusals == [
        'metadata.name: Invalid value: "b": field is immutable'
    ]


def test_warnings_are_kept() -> None:
    answer = create(pipeline(), foo(metadata={"name": "a", "finalizers": ["plain"]}))

    assert answer.accepted
    assert ["plain" in text for text in answer.warnings] == [True]


def test_an_update_that_cannot_be_decoded_is_refused() -> None:
    assert update(pipeline(), foo(metadata={"labels": 1}), foo()).undecodable
