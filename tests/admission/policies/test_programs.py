"""Programs of policies without a server: budgets, laziness, what decisions become, laws."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.kube.admission.compile import compile_expression
from instar.kube.admission.evaluation import (
    CostPhase,
    Error,
    ExpressionInputs,
    Failed,
    Meter,
    OutOfBudget,
    TooLongForLoop,
)
from instar.kube.admission.expressions import declared_variables, with_variables
from instar.kube.admission.policies.enforcement import FAILURE_KEY, PolicyVerdict
from instar.kube.admission.policies.mutating import MutatingProgram, MutationFailed
from instar.kube.admission.policies.validating import (
    Annotation,
    FailedValidation,
    PolicyResult,
    ValidatingProgram,
    truncate_annotation,
)
from instar.kube.admission.policies.variables import compile_variables
from instar.kube.apply.ownership_schema import TypedSchema, compile_schema
from instar.kube.cel.library.authorizer import CelAuthorizer, CelAuthzQuestion, ResourceCheck
from instar.kube.cel.library.authorizer import CelAuthzDecision as Answer
from instar.kube.schema.structure.parse import structural

REQUEST: Object = {"operation": "CREATE", "dryRun": False}


def inputs(obj: Any = None, **more: Any) -> ExpressionInputs:
    return ExpressionInputs(obj, None, REQUEST, **more)


def phase(budget: int, *variables: tuple[str, str], obj: Any = None) -> tuple[CostPhase, Any]:
    names = declared_variables(params=False)
    composed = compile_variables(
        [{"name": name, "expression": text} for name, text in variables], names
    )
    seen = with_variables(names, composed.types)
    made = CostPhase(Meter(), inputs(obj), composed.expressions, budget)
    return made, lambda text: made.run(compile_expression(text, seen))


def test_a_phase_has_a_budget() -> None:
    made, run = phase(25)
    source = "[1, 2].all(x, x > 0)"

    assert run(source) is True
    assert made.remaining < 25
    with pytest.raises(OutOfBudget, match="running out of cost budget"):
        [run(source) for _ in range(10)]


def test_the_cost_of_a_variable_is_charged_once_to_its_first_reader() -> None:
    expensive = "[1,2,3,4,5,6,7,8,9].all(x, x > 0)"
    made, run = phase(10_000, ("v", expensive))

    before = made.remaining
    run("variables.v")
    first = before - made.remaining
    run("variables.v")
    second = before - first - made.remaining

    assert first > second > 0


def test_an_unread_variable_costs_nothing_and_fails_no_expression() -> None:
    _, run = phase(10, ("broken", "object.nope.nope"), obj={})

    assert run("1 > 0") is True
    assert run("variables.broken == 1") == Failed(
        "expression 'variables.broken == 1' resulted in error: composited variable \"broken\" "
        "fails to evaluate: no such key: nope"
    )


HEAVY = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, {0}))"


def test_an_expression_too_costly_for_the_event_loop_gives_the_same_result_in_a_thread() -> None:
    source = HEAVY.format(HEAVY.format(HEAVY.format("a + b >= 0")))
    program = ValidatingProgram({"validations": [{"expression": source}]})

    with pytest.raises(TooLongForLoop):
        program.validate(Meter(), inputs())
    found = program.validate(Meter(hurried=False), inputs())

    assert found.decisions[0].message.endswith("actual cost limit exceeded")


def test_asking_for_permissions_is_dear_and_quick() -> None:
    asked: list[CelAuthzQuestion] = []

    def decide(question: CelAuthzQuestion) -> Answer:
        asked.append(question)
        return Answer(True)

    source = "authorizer.group('').resource('pods').check('get').allowed()"
    program = ValidatingProgram({"validations": [{"expression": source}]})
    of_request = ResourceCheck(decide, CelAuthzQuestion(""))

    found = program.validate(
        Meter(asks=True), inputs(authorizer=CelAuthorizer(decide), of_request=of_request)
    )

    assert found == PolicyResult([], [])
    assert [each.resource for each in asked] == ["pods"]


def test_notes_cannot_ask_for_permissions() -> None:
    source = "authorizer.path('/x').check('get').allowed() ? 'a' : 'b'"
    program = ValidatingProgram({"auditAnnotations": [{"key": "k", "valueExpression": source}]})

    [note] = program.validate(Meter(asks=True), inputs()).annotations

    assert note.failure.endswith("resulted in error: no such attribute(s): authorizer")


@pytest.mark.parametrize(
    ("expression", "notes"),
    [
        ("'  v  '", [Annotation("k", "v")]),
        ("'   '", []),
        ("null", []),
        ("string(object.a)", [Annotation("k", "2")]),
    ],
)
def test_notes_are_trimmed_and_left_out_when_empty(expression: str, notes: list[Any]) -> None:
    program = ValidatingProgram({"auditAnnotations": [{"key": "k", "valueExpression": expression}]})

    assert program.validate(Meter(), inputs({"a": 2})).annotations == notes


def test_a_note_is_cut_at_ten_kilobytes_and_never_within_a_character() -> None:
    assert truncate_annotation("x" * 10_240) == "x" * 10_240
    assert len(truncate_annotation("x" * 10_241)) == 10_240
    assert truncate_annotation("ä" * 6_000) == "ä" * 5_120


def test_the_first_failure_is_noted_for_the_audit_log() -> None:
    verdict = PolicyVerdict()
    decisions = [FailedValidation(1, "m1"), FailedValidation(2, "m2")]

    verdict.take("pol", "bind", ["Audit", "Warn"], PolicyResult(decisions, []))

    assert json.loads(verdict.annotations[FAILURE_KEY]) == [
        {
            "message": "m1",
            "policy": "pol",
            "binding": "bind",
            "expressionIndex": 1,
            "validationActions": ["Audit", "Warn"],
        }
    ]
    assert len(verdict.warnings) == 2
    assert verdict.refusals == []


def test_notes_of_several_bindings_stand_side_by_side() -> None:
    verdict = PolicyVerdict()
    values = ["a", "b", "a"]

    verdict.annotate("pol", [PolicyResult([], [Annotation("k", value)]) for value in values])

    assert verdict.annotations == {"pol/k": "a, b"}


def test_a_note_that_fails_denies_whatever_the_actions_are() -> None:
    verdict = PolicyVerdict()

    verdict.take("pol", "bind", ["Warn"], PolicyResult([], [Annotation("k", failure="broken")]))

    assert [str(each) for each in verdict.refusals] == [
        "ValidatingAdmissionPolicy 'pol' with binding 'bind' denied request: broken"
    ]


def test_a_stored_expression_that_does_not_compile_fails_when_it_is_evaluated() -> None:
    spec = {"validations": [{"expression": "nobody.knows"}, {"expression": "true"}]}

    strict = ValidatingProgram(spec).validate(Meter(), inputs())
    lax = ValidatingProgram({**spec, "failurePolicy": "Ignore"}).validate(Meter(), inputs())

    assert strict.decisions[0].message.startswith("compilation error: compilation failed: ERROR: ")
    assert strict.decisions[0].error is Error.COMPILE
    assert [each.forgiven for each in lax.decisions] == [True]


SCHEMA = compile_schema(
    structural(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "m": {"type": "object", "additionalProperties": {"type": "string"}},
                        "set": {
                            "type": "array",
                            "items": {"type": "string"},
                            "x-kubernetes-list-type": "set",
                        },
                    },
                }
            },
        }
    )
)
_words = st.text("abc", min_size=1, max_size=3)
_specs = st.fixed_dictionaries(
    {}, optional={"m": st.dictionaries(_words, _words), "set": st.lists(_words, unique=True)}
)


def mutator(kind: str, source: str) -> Callable[[Object], Object]:
    member = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}[kind]
    spec = {"mutations": [{"patchType": kind, member: {"expression": source}}]}
    program = MutatingProgram(spec)
    schema: TypedSchema = SCHEMA

    def mutate(obj: Object) -> Object:
        return program.mutate(program.mutations[0], schema, Meter(), inputs(obj))

    return mutate


COPY = mutator("ApplyConfiguration", "Object{spec: Object.spec{m: {'k': 'v'}, set: ['a', 'z']}}")
PATCH = mutator("JSONPatch", "[JSONPatch{op: 'add', path: '/spec', value: {'m': {'k': 'v'}}}]")


@given(_specs)
def test_a_configuration_applied_twice_is_applied_once(spec: Object) -> None:
    obj = {"apiVersion": "x/v1", "kind": "X", "metadata": {}, "spec": spec}
    before = json.dumps(obj)

    once = COPY(obj)

    assert COPY(once) == once
    assert once["spec"]["m"] == {**spec.get("m", {}), "k": "v"}
    assert set(once["spec"]["set"]) == {*spec.get("set", ()), "a", "z"}
    assert json.dumps(obj) == before


@given(_specs)
def test_a_patch_leaves_the_object_it_was_given_alone(spec: Object) -> None:
    obj = {"apiVersion": "x/v1", "kind": "X", "metadata": {}, "spec": spec}
    before = json.dumps(obj)

    assert PATCH(obj)["spec"] == {"m": {"k": "v"}}
    assert json.dumps(obj) == before


def test_a_value_without_a_json_form_is_reported() -> None:
    mutate = mutator("JSONPatch", "[JSONPatch{op: 'add', path: '/x', value: quantity('1')}]")

    with pytest.raises(MutationFailed, match="could not marshal to JSON"):
        mutate({})
