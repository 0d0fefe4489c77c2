"""ValidatingAdmissionPolicy over HTTP: the tables of the reference, texts to the letter."""

from __future__ import annotations

import pytest

from tests.admission.policies.support import Cluster

DENIED = "ValidatingAdmissionPolicy 'pol.ref.io' with binding 'bind.ref.io' denied request: "


def denial(cluster: Cluster, name: str, text: str) -> str:
    return f'widgets.{cluster.group} "{name}" is forbidden: {DENIED}{text}'


def test_a_validation_that_fails_denies_the_request_in_upstreams_words(cluster: Cluster) -> None:
    validation = {"expression": "object.spec.a == 'zz'", "message": "  must be zz "}
    cluster.policy(validations=[validation])
    cluster.bind()

    answer = cluster.create("vp", a="b")

    text = f"{DENIED}must be zz"
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'widgets.{cluster.group} "vp" is forbidden: {text}',
        "reason": "Invalid",
        "details": {
            "name": "vp",
            "group": cluster.group,
            "kind": "widgets",
            "causes": [{"message": text}],
        },
        "code": 422,
    }
    assert cluster.create("vp", a="zz").status == 201


@pytest.mark.parametrize(
    ("reason", "code"),
    [("Invalid", 422), ("Forbidden", 403), ("RequestEntityTooLarge", 413)],
)
def test_the_reason_decides_the_code(cluster: Cluster, reason: str, code: int) -> None:
    cluster.policy(validations=[{"expression": "false", "reason": reason}])
    cluster.bind()

    answer = cluster.create("vp")

    assert answer.status == answer.json["code"] == code
    assert answer.json["reason"] == reason
    assert answer.json["message"] == denial(cluster, "vp", "failed expression: false")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("object.spec.nope == 1", "resulted in error: no such key: nope"),
        ("request.subResource == ''", "resulted in error: no such key: subResource"),
        ("request.userInfo.extra == {}", "resulted in error: no such key: extra"),
        ("oldObject.spec.a == ''", "resulted in error: no such key: spec"),
        ("object.metadata.labels.x == ''", "resulted in error: no such key: labels"),
        (
            "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, "
            "[1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, "
            "a + b + c + d + e + f > 0))))))",
            "resulted in error: operation cancelled: actual cost limit exceeded",
        ),
    ],
)
def test_an_expression_that_fails_is_a_denial(cluster: Cluster, expression: str, text: str) -> None:
    cluster.policy(expression)
    cluster.bind()

    answer = cluster.create("vp")

    assert answer.status == 422
    assert answer.json["message"] == denial(cluster, "vp", f"expression '{expression}' {text}")


def test_a_policy_that_ignores_errors_lets_that_validation_pass_and_no_other(
    cluster: Cluster,
) -> None:
    cluster.policy("object.spec.nope == 1", "object.spec.n > 3", failurePolicy="Ignore")
    cluster.bind()

    assert cluster.create("a", n=4).status == 201
    answer = cluster.create("b", n=3)
    assert answer.json["message"] == denial(cluster, "b", "failed expression: object.spec.n > 3")


def test_variables_see_those_before_them_and_their_failure_is_reported(cluster: Cluster) -> None:
    cluster.policy(
        "variables.sum > 9",
        "variables.broken > 3",
        variables=[
            {"name": "n", "expression": "object.spec.n"},
            {"name": "sum", "expression": "variables.n + 1"},
            {"name": "broken", "expression": "object.spec.nope"},
        ],
    )
    cluster.bind()

    small, large = cluster.create("a", n=1), cluster.create("b", n=9)

    assert small.json["message"] == denial(cluster, "a", "failed expression: variables.sum > 9")
    assert large.json["message"] == denial(
        cluster,
        "b",
        "expression 'variables.broken > 3' resulted in error: composited variable \"broken\" fails "
        "to evaluate: no such key: nope",
    )


@pytest.mark.parametrize(
    ("message_expression", "told"),
    [
        ("'got ' + string(object.spec.n)", "got 3"),
        ("'  '", "static"),
        ("'two\\nlines'", "static"),
        ("string(object.spec.nope)", "static"),
        ("'x'.format([]) + 'y'", "xy"),
    ],
)
def test_the_message_is_the_expressions_where_it_finds_a_usable_one(
    cluster: Cluster, message_expression: str, told: str
) -> None:
    validation = {
        "expression": "object.spec.n > 3",
        "message": "static",
        "messageExpression": message_expression,
    }
    cluster.policy(validations=[validation])
    cluster.bind()

    assert cluster.create("vp", n=3).json["message"] == denial(cluster, "vp", told)


def test_conditions_decide_whether_a_policy_is_evaluated(cluster: Cluster) -> None:
    cluster.policy(
        "false",
        matchConditions=[
            {"name": "error", "expression": "object.spec.nope == 1"},
            {"name": "named", "expression": "object.metadata.name.startsWith('x')"},
        ],
    )
    cluster.bind()

    assert cluster.create("other").status == 201
    assert cluster.create("x1").json["message"] == denial(
        cluster, "x1", "expression 'object.spec.nope == 1' resulted in error: no such key: nope"
    )


def test_a_warning_is_reported_and_nothing_is_denied(cluster: Cluster) -> None:
    cluster.policy("object.spec.n > 3", "object.spec.nope == 1")
    cluster.bind("Warn", "Audit")

    answer = cluster.create("vp", n=3)

    assert answer.status == 201
    told = "Validation failed for ValidatingAdmissionPolicy 'pol.ref.io' with binding 'bind.ref.io'"
    assert answer.warnings == [
        f'299 - "{told}: failed expression: object.spec.n > 3"',
        f"299 - \"{told}: expression 'object.spec.nope == 1' resulted in error: no such key: "
        'nope"',
    ]


def test_of_several_denials_the_first_is_reported(cluster: Cluster) -> None:
    cluster.policy("true", "1 > 2", "2 > 3")
    cluster.bind()

    assert cluster.create("vp").json["message"] == denial(cluster, "vp", "failed expression: 1 > 2")


def test_a_policy_without_a_binding_and_a_binding_without_a_policy_do_nothing(
    cluster: Cluster,
) -> None:
    cluster.policy("false")
    assert cluster.create("a").status == 201

    cluster.bind(policy="nobody.ref.io")
    assert cluster.create("b").status == 201


def test_a_change_of_a_policy_is_seen_by_the_next_request(cluster: Cluster) -> None:
    made = cluster.policy("false")
    cluster.bind()
    assert cluster.create("a").status == 422
    made["spec"]["validations"] = [{"expression": "true"}]
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pol.ref.io"
    latest = cluster.server.request("GET", path).json["metadata"]["resourceVersion"]
    made["metadata"]["resourceVersion"] = latest

    answer = cluster.server.request("PUT", path, made)

    assert answer.status == 200, answer.text
    assert cluster.create("a").status == 201


def test_expressions_can_read_the_namespace_of_an_object(cluster: Cluster) -> None:
    cluster.policy(
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'",
        "namespaceObject.status.phase == 'Active'",
    )
    cluster.bind()

    assert cluster.create("vp").status == 201


def test_dry_runs_are_judged_as_well(cluster: Cluster) -> None:
    cluster.policy("request.dryRun && request.options.dryRun == ['All']")
    cluster.bind()

    assert cluster.create("a", query="?dryRun=All").status == 201
    assert cluster.create("a").status == 422


def test_expressions_can_call_the_authorizer(cluster: Cluster) -> None:
    cluster.policy(
        "authorizer.group('').resource('pods').namespace('default').check('get').allowed()",
        "authorizer.requestResource.check('create').allowed()",
        "authorizer.path('/healthz').check('get').allowed()",
        "authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get')"
        ".errored() == false",
    )
    cluster.bind()

    answer = cluster.create("vp")

    assert answer.status == 201, answer.text


def test_denials_warnings_and_ignored_failures_are_counted(cluster: Cluster) -> None:
    cluster.policy("false", name="counted.ref.io")
    cluster.policy("object.nope == 1", name="forgiven.ref.io", failurePolicy="Ignore")
    cluster.bind("Warn", "Audit", name="counted", policy="counted.ref.io")
    cluster.bind(name="forgiven", policy="forgiven.ref.io")

    assert cluster.create("vp").status == 201

    page = cluster.server.request("GET", "/metrics").text
    name = "apiserver_validating_admission_policy_check_total"
    for binding, action in (("counted", "warn"), ("counted", "audit"), ("forgiven", "allow")):
        labels = (
            f'policy="{binding}.ref.io",policy_binding="{binding}",error_type="invalid_error",'
            f'enforcement_action="{action}"'
        )
        assert f"{name}{{{labels}}} 1\n" in page
