"""Nothing that makes an object larger than its body goes on without an end, and none of it is
stored above the limit; a small object with a costly schema holds nobody up. The table of
docs/reference/limits.md names the test of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.base import limits, offload
from instar.base.errors import RequestTooLarge
from instar.base.field_errors import errors_to_report, invalid
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.validation.cost import validation_cost
from instar.kube.schema.validation.findings import Findings, collect_errors
from instar.server.registry.kinds.workloads.podspec_defaults import default_pod_spec
from tests.support.server import LiveServer, live_server

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LARGE_DEFAULT = "x" * 20_000


def crd(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.amp.io"},
        "spec": {
            "group": "amp.io",
            "scope": "Cluster",
            "names": {"plural": f"{name}s", "kind": name.capitalize()},
            "versions": [version],
        },
    }


GROWING = {
    "type": "object",
    "properties": {
        "l": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"d": {"type": "string", "default": LARGE_DEFAULT}},
            },
        }
    },
}
COSTLY = {
    "type": "object",
    "properties": {
        "l": {
            "type": "array",
            "items": {"type": "integer", "anyOf": [{"minimum": 1000 + n} for n in range(500)]},
        }
    },
}
TELLING = {
    "type": "object",
    "additionalProperties": {
        "type": "integer",
        "allOf": [{"minimum": 1000 + n} for n in range(300)],
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        for name, spec in (("grow", GROWING), ("cost", COSTLY), ("tell", TELLING)):
            running.create_crd(crd(name, spec))
        yield running


def body(kind: str, spec: Any, **more: Any) -> dict[str, Any]:
    metadata = {"name": "a", **more}
    return {
        "apiVersion": "amp.io/v1",
        "kind": kind.capitalize(),
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize("dry_run", ["", "?dryRun=All"])
def test_defaults_do_not_make_a_small_body_a_large_object(server: LiveServer, dry_run: str) -> None:
    answer = server.request(
        "POST", f"/apis/amp.io/v1/grows{dry_run}", body("grow", {"l": [{}] * 900})
    )

    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")


def test_an_apply_and_a_patch_do_not_either(server: LiveServer) -> None:
    path, large = "/apis/amp.io/v1/grows/b", body("grow", {"l": [{}] * 900})
    large["metadata"]["name"] = "b"
    apply = server.request(
        "PATCH", f"{path}?fieldManager=m", large, content_type="application/apply-patch+yaml"
    )
    created = server.request("POST", "/apis/amp.io/v1/grows", body("grow", {}, name="b"))
    patch = server.request(
        "PATCH",
        path,
        {"spec": {"l": [{}] * 900}},
        content_type="application/merge-patch+json",
    )

    assert (apply.status, created.status, patch.status) == (413, 201, 413)


def test_objects_that_grow_within_the_limit_are_stored(server: LiveServer) -> None:
    spec: dict[str, Any] = {"l": [{}] * 100}
    answer = server.request("POST", "/apis/amp.io/v1/grows", body("grow", spec, name="c"))

    assert answer.status == 201
    assert answer.json["spec"]["l"] == [{"d": LARGE_DEFAULT}] * 100
    assert not server.running.machinery.watchdog.held


def test_a_step_of_the_loop_that_outgrows_it_is_done_in_a_thread() -> None:
    compiled = compile_schema({"type": "object", "properties": {"spec": GROWING}})
    obj: dict[str, Any] = {"spec": {"l": [{}, {}]}}

    with pytest.raises(offload.TooLargeForLoop):
        offload.run_inline(lambda: compiled.default(obj))
    compiled.default(obj)

    assert obj == {"spec": {"l": [{"d": LARGE_DEFAULT}] * 2}}


def test_code_that_cannot_wait_gets_none_for_work_that_belongs_into_a_thread() -> None:
    compiled = compile_schema({"type": "object", "properties": {"spec": GROWING}})
    outgrown: dict[str, Any] = {"spec": {"l": [{}, {}]}}

    def default() -> bool:
        compiled.default(outgrown)
        return True

    assert offload.run_if_small(limits.LOOP_BYTES, len, "ab") == 2
    assert offload.run_if_small(limits.LOOP_BYTES + 1, len, "ab") is None
    assert offload.run_if_small(1, default) is None


def test_defaults_within_defaults_are_counted_while_they_are_made() -> None:
    """Each null of a list is replaced by a list of nulls: 200 to the fourth strings."""
    schema: dict[str, Any] = {"type": "string", "default": "x" * 20}
    for _ in range(4):
        schema = {"type": "array", "items": schema, "default": [None] * 200}
    compiled = compile_schema({"type": "object", "properties": {"spec": schema}})

    with pytest.raises(RequestTooLarge):
        compiled.default({})


def test_a_pod_of_a_million_containers_is_refused_while_it_grows() -> None:
    with pytest.raises(RequestTooLarge):
        default_pod_spec({"containers": [{} for _ in range(100_000)]})


def test_a_pod_is_refused_where_its_defaults_are_too_much(server: LiveServer) -> None:
    containers = [{"name": f"c{number}", "image": "i"} for number in range(40_000)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    path = "/api/v1/namespaces/default/pods"

    answer = server.request("POST", path, {**pod, "spec": {"containers": containers}})

    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")


def test_managed_fields_of_many_appliers_are_refused_where_they_are_too_much(
    server: LiveServer,
) -> None:
    data = {f"k{number:06}": "" for number in range(60_000)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    path = "/api/v1/namespaces/default/configmaps/m"
    statuses = []
    for manager in range(12):
        statuses.append(
            server.request(
                "PATCH",
                f"{path}?fieldManager=m{manager}&force=true",
                config,
                content_type="application/apply-patch+yaml",
            ).status
        )
        if statuses[-1] == 413:
            break

    assert statuses[0] == 201
    assert statuses[-1] == 413


def test_a_small_object_with_a_costly_schema_delays_no_request(server: LiveServer) -> None:
    server.running.machinery.watchdog.held.clear()
    for _ in range(2):
        answer = server.request("POST", "/apis/amp.io/v1/costs", body("cost", {"l": [1] * 900}))

        assert answer.status == 422
        assert len(answer.text) < 4 * limits.MAX_REFUSAL
    assert not server.running.machinery.watchdog.held


def test_a_refusal_tells_a_bounded_number_of_errors(server: LiveServer) -> None:
    spec = {f"k{number}": 1 for number in range(300)}
    answer = server.request("POST", "/apis/amp.io/v1/tells", body("tell", spec))

    assert answer.status == 422
    assert len(answer.json["details"]["causes"]) <= limits.MAX_ERRORS_TOLD
    assert answer.json["message"].endswith(", and there are more errors")
    assert len(answer.text) < 4 * limits.MAX_REFUSAL


def test_a_refusal_of_large_values_is_bounded_in_bytes() -> None:
    errors = [invalid("spec", "x" * 300_000, "bad") for _ in range(50)]

    assert len(errors_to_report(errors)) == 3
    assert len(errors_to_report(errors[:1])) == 1


def test_validation_stops_when_a_response_is_full_of_errors() -> None:
    def judge(out: list[Any]) -> None:
        while True:
            out.append(invalid("a", 1, "bad"))

    found = collect_errors(judge)

    assert isinstance(found, Findings)
    assert len(found) == limits.MAX_ERRORS_TOLD + 1


def nested(levels: int) -> dict[str, Any]:
    return {"anyOf": [nested(levels - 1)] * 5} if levels else {"minLength": 1}


@pytest.mark.parametrize(
    ("schema", "cost"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, 1),
        ({"type": "array", "items": {"anyOf": [{"minimum": 1}] * 7}}, 8),
        ({"additionalProperties": {"allOf": [{"minimum": 1}] * 9}}, 10),
        ({"anyOf": [{"properties": {"a": {"minimum": 1}}}] * 4}, 5),
        ({"not": {"oneOf": [{"minimum": 1}] * 3}}, 5),
        (nested(4), 1 + 5 + 25 + 125 + 625),
        ({"enum": ["a"] * 1600}, 101),
    ],
)
def test_the_cost_of_a_schema_is_how_many_judge_one_value(
    schema: dict[str, Any], cost: int
) -> None:
    assert validation_cost(structural(schema)) == cost


def test_an_object_that_takes_too_long_to_judge_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("instar.kube.schema.validation.findings.JUDGING_SECONDS", -1.0)
    compiled = compile_schema({"type": "object", "properties": {"spec": COSTLY}})

    [error] = compiled.validate({"spec": {"l": [1]}})

    assert error.detail == "it took too long to validate this by its schema"


def test_an_unchanged_part_with_many_errors_is_still_forgiven() -> None:
    """A list that is full ends the walk; what is forgiven as a whole must not be refused then."""
    numbers = {"type": "array", "items": {"type": "integer", "minimum": 1000}}
    spec = {"type": "object", "properties": {"l": numbers}}
    compiled = compile_schema({"type": "object", "properties": {"spec": spec}})
    old = {"spec": {"l": [1] * 1200}}

    found = compiled.validate({"spec": {"l": [1] * 1200}, "x": 1}, old)

    assert found == []
