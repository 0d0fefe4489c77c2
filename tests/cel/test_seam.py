"""What a host without schemas needs of the engine: named types, values of its own, functions on
them, objects an expression builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import thread_time
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from instar.kube.api.encoding.json_text import encode_sorted
from instar.kube.cel.cel_to_json import to_json
from instar.kube.cel.engine import BadExpression, analyse, prepare
from instar.kube.cel.functions import Library, method
from instar.kube.cel.host_types import open_record, record, without_objects
from instar.kube.cel.library import KUBERNETES, MUTATION
from instar.kube.cel.library.authorizer import (
    AUTHORIZER,
    RESOURCE_CHECK,
    CelAuthorizer,
    CelAuthzDecision,
    CelAuthzQuestion,
    ResourceCheck,
)
from instar.kube.cel.library.patches import misplaced_types, type_named
from instar.kube.cel.types import BOOL, DYN, INT, STRING, Type, list_of, map_of, message
from instar.kube.cel.values import CelError, LazyValue, Opaque, StructValue

KIND = record("kubernetes.GroupVersionKind", {"group": STRING, "kind": STRING})
REQUEST = record(
    "kubernetes.AdmissionRequest",
    {"kind": KIND, "namespace": STRING, "dryRun": BOOL, "options": DYN},
)
HOST: Mapping[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "request": REQUEST,
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
    "variables": record("kubernetes.variables", {"replicas": INT, "names": list_of(STRING)}),
}
DEPLOYMENT = {"metadata": {"labels": {"a/b": "x"}}, "spec": {"replicas": 3, "paused": None}}
SENT = {"kind": {"group": "apps", "kind": "Deployment"}, "dryRun": False}


def run(source: str, values: Mapping[str, Any], library: Library = KUBERNETES) -> Any:
    """The value; an error is raised."""
    checked = analyse(source, HOST, types=type_named, library=library)
    order = sorted(HOST)
    runner = prepare(checked, order)
    value, _ = runner.run([values.get(name) for name in order], 10**9, thread_time() + 10)
    if isinstance(value, CelError):
        raise value
    return value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("object.spec.replicas > 2", True),
        ("has(object.spec.replicas) && !has(object.spec.nothing)", True),
        ("object.spec.paused == null", True),
        ("object.metadata.labels['a/b']", "x"),
        ("oldObject == null", True),
        ("object.spec.?size.orValue(7)", 7),
        ("object.metadata.labels.exists(name, name.startsWith('a/'))", True),
        ("request.kind.group + '/' + request.kind.kind", "apps/Deployment"),
        ("has(request.namespace)", False),
        ("request.dryRun", False),
    ],
)
def test_plain_json_is_a_value_of_any_type_and_of_a_named_one(source: str, expected: Any) -> None:
    assert run(source, {"object": DEPLOYMENT, "request": SENT}) == expected


def test_fields_of_a_named_type_are_checked_before_anything_runs() -> None:
    with pytest.raises(BadExpression, match="undefined field 'uid'"):
        analyse("request.uid == ''", HOST)
    with pytest.raises(BadExpression, match="no matching overload"):
        analyse("request.dryRun == 'true'", HOST)


def test_a_field_that_is_not_there_is_an_error_when_it_is_read() -> None:
    with pytest.raises(CelError, match=r"^no such key: namespace$"):
        run("request.namespace == 'x'", {"request": SENT})


def lazy(**compute: Callable[[], Any]) -> LazyValue:
    return LazyValue(compute, "kubernetes.variables")


def test_a_lazy_field_is_computed_when_it_is_first_read_and_once() -> None:
    asked: list[str] = []

    def replicas() -> int:
        asked.append("replicas")
        return 3

    def names() -> list[str]:
        raise AssertionError("nobody asked for names")

    variables = lazy(replicas=replicas, names=names)
    source = "variables.replicas == 3 && variables.replicas + 1 == 4 && has(variables.replicas)"

    assert run(source, {"variables": variables}) is True
    assert asked == ["replicas"]


def test_a_lazy_field_that_fails_is_an_error_and_is_not_read_again() -> None:
    asked: list[str] = []

    def replicas() -> int:
        asked.append("replicas")
        raise CelError('composited variable "replicas" fails to evaluate: no such key: spec')

    variables = lazy(replicas=replicas)

    assert run("variables.replicas > 3 || true", {"variables": variables}) is True
    with pytest.raises(CelError, match="composited variable"):
        run("variables.replicas > 3", {"variables": variables})
    assert asked == ["replicas"]


def test_object_types_are_dynamic_in_other_expressions() -> None:
    assert without_objects(list_of(map_of(STRING, INT))) == list_of(map_of(STRING, INT))
    assert without_objects(list_of(REQUEST)) == list_of(DYN)
    assert without_objects(analyse("duration('1s')", {}).type).name == "duration"
    assert without_objects(analyse("quantity('1')", {}).type) == DYN


@pytest.mark.parametrize(
    ("source", "question"),
    [
        (
            "authorizer.group('apps').resource('deployments').namespace('n').check('get').allowed()",
            CelAuthzQuestion("get", group="apps", resource="deployments", namespace="n"),
        ),
        (
            "authorizer.path('/healthz').check('get').allowed()",
            CelAuthzQuestion("get", path="/healthz"),
        ),
        (
            "authorizer.requestResource.check('delete').allowed()",
            CelAuthzQuestion("delete", resource="pods", name="p"),
        ),
    ],
)
def test_the_host_answers_what_an_expression_asks(source: str, question: CelAuthzQuestion) -> None:
    asked: list[CelAuthzQuestion] = []

    def decide(each: CelAuthzQuestion) -> CelAuthzDecision:
        asked.append(each)
        return CelAuthzDecision(True)

    values = {
        "authorizer": CelAuthorizer(decide),
        "authorizer.requestResource": ResourceCheck(
            decide, CelAuthzQuestion("", resource="pods", name="p")
        ),
    }

    assert run(source, values) is True
    assert asked == [question]


@dataclass(frozen=True, slots=True)
class Device(Opaque):
    cel_type = "test.Device"
    memory: int


def test_a_host_brings_functions_on_its_own_values() -> None:
    device = message("test.Device")
    library = KUBERNETES.with_functions(
        [method("memory", (device,), INT, lambda of: of.memory, work=lambda *_sizes: 5)]
    )
    checked = analyse("device.memory() >= 2", {"device": device}, library=library)

    value, cost = prepare(checked, ["device"]).run([Device(4)], 100, thread_time() + 10)

    assert (value, cost) == (True, 7)
    with pytest.raises(BadExpression, match="undeclared reference to 'memory'"):
        analyse("device.memory() >= 2", {"device": device})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
            {"spec": {"replicas": 4}},
        ),
        ("Object{?a: optional.none(), ?b: optional.of(1)}", {"b": 1}),
        (
            "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
            {"metadata": {"labels": {"a": "b"}}},
        ),
        (
            "Object{spec: Object.spec{items: [Object.spec.items{n: 1.0}]}}",
            {"spec": {"items": [{"n": 1}]}},
        ),
        (
            "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('k8s.io/m~l'), value: 1}]",
            [{"op": "add", "path": "/a/k8s.io~1m~0l", "value": 1}],
        ),
    ],
)
def test_objects_and_patches_can_be_built(source: str, expected: Any) -> None:
    assert to_json(run(source, {"object": DEPLOYMENT}, MUTATION)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Object{a: 1} == Object{a: 1}", True),
        ("Object{a: 1} == Object{a: 2}", False),
        ("dyn(Object{a: 1}) == dyn(Object.b{a: 1})", False),
        ("dyn(Object{}) == dyn({})", False),
        ("optional.ofNonZeroValue(Object{}).hasValue()", False),
        ("optional.ofNonZeroValue(Object{a: 1}).hasValue()", True),
        ("Object{a: 1}.a", 1),
        ("has(Object{a: 1}.b)", False),
        ("[Object{a: 1}, Object{a: 2}].map(x, x.a)", [1, 2]),
        ("Object{a: 1} in [Object{a: 2}, Object{a: 1}]", True),
    ],
)
def test_objects_built_by_an_expression_are_ordinary_values(source: str, expected: Any) -> None:
    assert run(source, {}, MUTATION) == expected


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Nothing{a: 1}", "undeclared reference to 'Nothing'"),
        ("JSONPatch{op: 1}", "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("JSONPatch{operation: 'add'}", "undefined field 'operation'"),
    ],
)
def test_objects_built_by_an_expression_are_type_checked(source: str, text: str) -> None:
    with pytest.raises(BadExpression, match=text):
        analyse(source, {}, types=type_named)


def test_rules_build_nothing() -> None:
    for source in ("Object{}", "jsonpatch.escapeKey('a')"):
        with pytest.raises(BadExpression, match="undeclared reference"):
            analyse(source, {})


def test_an_object_must_stand_where_its_type_is_named_after() -> None:
    right = run("Object{spec: Object.spec{a: [{'k': Object.spec.a{}}]}}", {}, MUTATION)
    wrong = run("Object{spec: Object.spec{a: Object.spec.b{}}}", {}, MUTATION)

    assert misplaced_types(right) == []
    assert misplaced_types(wrong) == [
        'unexpected type name "Object.spec.b", expected "Object.spec.a", which matches field name '
        "path from root Object type"
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[1, 2]", [1, 2]),
        ("b'abc'", "YWJj"),
        ("duration('90s')", "90s"),
        ("timestamp('2024-01-02T03:04:05Z')", "2024-01-02T03:04:05Z"),
        ("{'a': null}", {"a": None}),
        ("optional.of(true)", True),
        ("9007199254740993", "9007199254740993"),
        ("1.5", 1.5),
    ],
)
def test_values_as_json(source: str, expected: Any) -> None:
    found = to_json(run(source, {}), long_as_text=True)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("source", ["{1: 2}", "quantity('1')", "type(1)", "0.0 / 0.0"])
def test_values_without_a_json_form_are_an_error(source: str) -> None:
    with pytest.raises(CelError, match="unsupported type conversion"):
        to_json(run(source, {}))


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64 - 1))
@example(1e30)
@example(-(2.0**63))
@example(2.0**63)
def test_every_number_of_cel_has_a_json_text(number: float) -> None:
    found = to_json({"n": number})

    assert float(orjson.loads(encode_sorted(found))["n"]) == float(number)


def test_deep_values_need_no_deep_stack() -> None:
    deep: Any = 1
    for _ in range(3_000):
        deep = StructValue({"a": [deep]}, "Object")

    found = to_json(deep)

    assert found["a"][0]["a"]
    assert len(misplaced_types(deep)) == 1
    while isinstance(deep, StructValue):  # Taken apart by hand: Python's own way is deep too.
        deep = deep.fields.pop("a").pop()
        found = found.pop("a").pop()


def test_an_open_type_has_every_field() -> None:
    anything = open_record("test.Any")
    checked = analyse("self.whatever + 1 == 3", {"self": anything})

    assert prepare(checked, ["self"]).run([{"whatever": 2}], 100, thread_time() + 10)[0] is True
