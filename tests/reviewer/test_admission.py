"""What a CRD change does to webhooks and policies that were written for the old one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.base.json_values import Object
from instar.cli.main import main
from instar.kube.api.encoding.manifests import Document
from instar.tools.reviewer.admission.findings import with_admission
from instar.tools.reviewer.engine import ReviewOptions
from instar.tools.reviewer.report import Report, Severity
from tests.admission.policies.support import apply
from tests.support import crds
from tests.support.server import LiveServer

API = "admissionregistration.k8s.io/v1"
RULE: Object = {
    "apiGroups": ["example.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["widgets"],
}
OF_CRDS: Object = {
    **RULE,
    "apiGroups": ["apiextensions.k8s.io"],
    "resources": ["customresourcedefinitions"],
}
SIZE, COLOR = {"size": {"type": "integer"}}, {"color": {"type": "string"}}


def crd(**versions: Object) -> Object:
    """Versions by name with the fields of their spec; the first is stored."""
    made = [
        crds.version(
            name,
            crds.fields(spec={"type": "object", "properties": fields}),
            storage=position == 0,
        )
        for position, (name, fields) in enumerate(versions.items())
    ]
    return crds.crd(*made, group="example.com", plural="widgets", kind="Widget")


def policy(*expressions: str, rule: Object = RULE, **spec: Any) -> list[Object]:
    match = {"resourceRules": [rule], **spec.pop("match", {})}
    body = {
        "matchConstraints": match,
        "validations": [{"expression": each} for each in expressions],
        **spec,
    }
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    return [
        {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", **named("p"), "spec": body},
        {
            "apiVersion": API,
            "kind": "ValidatingAdmissionPolicyBinding",
            **named("b"),
            "spec": binding,
        },
    ]


def named(name: str) -> Object:
    return {"metadata": {"name": name}}


def found(old: Object | None, new: Object, *admission: Object) -> list[tuple[str, str, str]]:
    """(rule, version, message) of each finding about admission."""
    name = new["metadata"]["name"]
    before = None if old is None else {name: Document(old, "")}
    documents = [Document(each, "admission.yaml") for each in admission]
    after = {name: Document(new, "")}
    report = with_admission(Report(), before, after, documents, ReviewOptions())
    return [(each.rule, each.version, each.message) for each in report.findings]


def test_policies_that_still_fit_are_not_reported() -> None:
    old, new = crd(v1=SIZE), crd(v1={**SIZE, **COLOR})

    assert found(old, new, *policy("object.spec.size > 3", "has(object.metadata.labels)")) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validations": [{"expression": "object.spec.color == ''"}]}, "validations[0].expression"),
        (
            {"validations": [{"expression": "true", "messageExpression": "object.spec.color"}]},
            "validations[0].messageExpression",
        ),
        (
            {"matchConditions": [{"name": "c", "expression": "has(oldObject.spec.color)"}]},
            "matchConditions[0].expression",
        ),
        (
            {"variables": [{"name": "v", "expression": "object.spec.color"}]},
            "variables[0].expression",
        ),
        (
            {"auditAnnotations": [{"key": "k", "valueExpression": "object.spec.color"}]},
            "auditAnnotations[0].valueExpression",
        ),
    ],
)
def test_every_expression_is_checked(spec: Object, field: str) -> None:
    old, new = crd(v1={**SIZE, **COLOR}), crd(v1=SIZE)

    [(rule, version, message)] = found(old, new, *policy("true", **spec))

    assert (rule, version) == ("policy-reads-removed-field", "v1")
    assert message == (
        f"ValidatingAdmissionPolicy p: spec.{field} does not fit the schema any more: undefined "
        "field 'color'"
    )


def test_objects_that_a_mutation_builds_are_checked() -> None:
    old, new = crd(v1={**SIZE, **COLOR}), crd(v1=SIZE)
    body = {
        "matchConstraints": {"resourceRules": [RULE]},
        "reinvocationPolicy": "Never",
        "mutations": [
            apply("Object{spec: Object.spec{size: 1}}"),
            apply("Object{spec: Object.spec{color: 'red'}}"),
        ],
    }
    mutating = {"apiVersion": API, "kind": "MutatingAdmissionPolicy", **named("m"), "spec": body}

    [(rule, _, message)] = found(old, new, mutating)

    assert rule == "policy-reads-removed-field"
    assert "spec.mutations[1].applyConfiguration.expression" in message


def test_only_versions_the_rules_name_are_read() -> None:
    old = crd(v1={**SIZE, **COLOR}, v2={**SIZE, **COLOR})
    new = crd(v1={**SIZE, **COLOR}, v2=SIZE)

    assert found(old, new, *policy("object.spec.color == ''")) == []


def test_a_webhook_with_exact_rules_misses_a_new_version() -> None:
    webhook = {"name": "w.x.io", "rules": [RULE], "matchPolicy": "Exact"}
    configuration = {
        "apiVersion": API,
        "kind": "ValidatingWebhookConfiguration",
        **named("hooks"),
        "webhooks": [webhook, {**webhook, "name": "lax.x.io", "matchPolicy": "Equivalent"}],
    }

    assert found(crd(v1=SIZE), crd(v1=SIZE, v2=SIZE), configuration) == [
        (
            "admission-misses-version",
            "v2",
            "webhook w.x.io of hooks has matchPolicy Exact and names v1 only: writes at v2 pass it "
            "by",
        )
    ]


def test_rules_that_name_only_versions_that_are_gone_are_an_error() -> None:
    new = crd(v2=SIZE)
    report = with_admission(
        Report(),
        {new["metadata"]["name"]: Document(crd(v1=SIZE, v2=SIZE), "")},
        {new["metadata"]["name"]: Document(new, "")},
        [Document(each, "a.yaml") for each in policy("true")],
        ReviewOptions(),
    )

    [finding] = report.findings
    assert (finding.rule, finding.severity) == ("admission-misses-version", Severity.ERROR)
    assert finding.message.endswith("names no version that is left (only v1): it is never asked")


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("object.spec.scope == 'Cluster'", True),
        ("object.spec.scope == 'Namespaced'", False),
        ("request.userInfo.username == 'root'", False),
        ("authorizer.path('/x').check('get').allowed()", False),
        (
            "oldObject == null || oldObject.spec.versions.size() == object.spec.versions.size()",
            True,
        ),
    ],
)
def test_a_policy_that_refuses_the_crd_is_reported(expression: str, refused: bool) -> None:
    old, new = crd(v1=SIZE), crd(v1=SIZE, v2=SIZE)

    rules = [rule for rule, *_ in found(old, new, *policy(expression, rule=OF_CRDS))]

    assert rules == (["policy-refuses-crd"] if refused else [])


def test_parameters_that_lie_beside_a_policy_are_used() -> None:
    documents = policy(
        "object.spec.versions.size() <= int(params.data.most)",
        rule=OF_CRDS,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    documents[1]["spec"]["paramRef"] = {
        "name": "limits",
        "namespace": "policies",
        "parameterNotFoundAction": "Deny",
    }
    limits = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "limits", "namespace": "policies"},
        "data": {"most": "1"},
    }

    alone = found(crd(v1=SIZE), crd(v1=SIZE, v2=SIZE), *documents)
    together = found(crd(v1=SIZE), crd(v1=SIZE, v2=SIZE), *documents, limits)

    assert [rule for rule, *_ in alone] == []
    assert [rule for rule, *_ in together] == ["policy-refuses-crd"]


@pytest.mark.parametrize(
    "broken",
    [
        {"apiVersion": API, "kind": "ValidatingAdmissionPolicy"},
        {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "spec": {"validations": [{}]}},
        {"apiVersion": API, "kind": "MutatingWebhookConfiguration", "webhooks": ["x", {}]},
        {"apiVersion": API, "kind": "ValidatingAdmissionPolicyBinding", "spec": 3},
        {"kind": "Nothing"},
    ],
)
def test_documents_of_other_kinds_are_ignored(broken: Object) -> None:
    assert found(crd(v1=SIZE), crd(v1=SIZE), broken) == []


def test_the_command_reads_files_and_clusters(
    server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, admission = (tmp_path / name for name in ("old.yaml", "new.yaml", "adm.yaml"))
    old.write_text(yaml.safe_dump(crd(v1={**SIZE, **COLOR})))
    new.write_text(yaml.safe_dump(crd(v1=SIZE)))
    documents = policy("object.spec.color == ''")
    admission.write_text(yaml.safe_dump_all(documents))
    base = f"/apis/{API}"
    paths = [f"{base}/validatingadmissionpolicies", f"{base}/validatingadmissionpolicybindings"]
    for path, body in zip(paths, documents, strict=True):
        assert server.request("POST", path, body).status == 201

    def rules(source: str) -> set[str]:
        cluster = ["--kubeconfig", str(server.kubeconfig), "--admission", source]
        main(["review", *cluster, "--no-witnesses", "-o", "json", str(old), str(new)])
        findings = json.loads(capsys.readouterr().out)["crds"][0]["findings"]
        return {each["rule"] for each in findings}

    try:
        assert "policy-reads-removed-field" in rules(str(admission))
        assert "policy-reads-removed-field" in rules("kube:")
    finally:
        server.request("DELETE", f"{paths[1]}/b")
        server.request("DELETE", f"{paths[0]}/p")


def test_a_webhooks_condition_that_reads_a_field_that_goes_is_named() -> None:
    condition = {"name": "large", "expression": "object.spec.size > 3"}
    hook = {"name": "v.example.com", "rules": [RULE], "matchConditions": [condition]}
    configuration = {
        "apiVersion": API,
        "kind": "ValidatingWebhookConfiguration",
        **named("c"),
        "webhooks": [hook],
    }

    ((rule, version, message),) = found(crd(v1=SIZE | COLOR), crd(v1=COLOR), configuration)

    assert (rule, version) == ("policy-reads-removed-field", "v1")
    assert message.startswith(
        "webhook v.example.com of c: webhooks[0].matchConditions[0].expression does not fit the "
        "schema any more: undefined field 'size'"
    )
