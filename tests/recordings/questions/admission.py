"""Admission: webhooks that allow, warn, change, refuse and fail; validating and mutating
policies. The recorder and the tests run the webhook (``hooks.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.hooks import ADMISSIONS
from tests.recordings.scenarios import Scenario, a_version, with_spec
from tests.support.faults import HTTP_FAULTS

_GROUP = "admissionregistration.k8s.io"
_SLOW = ("endless", "bomb", "stalled", "truncated", "reset", "closed", "not_http")
"""Faults whose texts depend on which side notices first, or that take long."""
_SCHEMA = with_spec(a={"type": "string"}, n={"type": "integer"})
_TAKEN_UP = 2.0
"""Seconds until kube-apiserver acts by a new configuration."""


def _rule(scenario: Scenario, *resources: str, operations: list[str] | None = None) -> Object:
    return {
        "operations": operations or ["*"],
        "apiGroups": [scenario.group],
        "apiVersions": ["*"],
        "resources": list(resources or ("foos",)),
    }


def _hook(scenario: Scenario, name: str, behaviour: str, **more: Any) -> Object:
    return {
        "name": f"{name}.{scenario.group}", "clientConfig": {"url": f"{{{{hook.url}}}}/admit/{behaviour}", "caBundle": "{{hook.ca}}"},
        "rules": [_rule(scenario)], "sideEffects": "None", "admissionReviewVersions": ["v1"], **more,
    }  # fmt: skip


def _configure(scenario: Scenario, kind: str, name: str, *hooks: Object) -> None:
    body = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": f"{scenario.name}-{name}"},
        "webhooks": list(hooks),
    }
    scenario.post(
        f"/apis/{_GROUP}/v1/{kind.lower()}webhookconfigurations",
        body,
        "configured",
        only_code=True,
        must_succeed=True,
        pause=_TAKEN_UP,
    )


def _by_label(label: str) -> Object:
    return {"objectSelector": {"matchLabels": {"hook": label}}}


def _labelled(scenario: Scenario, label: str, **fields: Any) -> Object:
    return scenario.object("x", metadata={"labels": {"hook": label}}, **fields)


def _behaviours() -> Iterator[Scenario]:
    """Each behaviour as a webhook of its own, chosen by a label of the object."""
    for kind in ("Validating", "Mutating"):
        scenario = Scenario(f"hooks-{kind.lower()}")
        scenario.make_crd(scenario.crd(_SCHEMA))
        names = [*ADMISSIONS, *(name for name in HTTP_FAULTS if name not in _SLOW)]
        hooks = [_hook(scenario, name.replace("_", "-"), name, **_by_label(name)) for name in names]
        ignoring = [
            _hook(
                scenario,
                f"i-{name.replace('_', '-')}",
                name,
                failurePolicy="Ignore",
                **_by_label(f"i-{name}"),
            )
            for name in names
        ]
        _configure(scenario, kind, "all", *hooks, *ignoring)
        path = f"{scenario.path('foos')}?dryRun=All"
        for name in names:
            scenario.post(path, _labelled(scenario, name, spec={"a": "1"}), name)
            scenario.post(
                path, _labelled(scenario, f"i-{name}", spec={"a": "1"}), f"ignored {name}"
            )
        yield scenario


def _requests() -> Scenario:
    """What an AdmissionRequest says: the webhook answers with it."""
    scenario = Scenario("hooks-requests")
    versions = [
        a_version(
            "v1",
            _SCHEMA,
            subresources={
                "status": {},
                "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
            },
        ),
        a_version("v2", _SCHEMA, storage=False),
    ]
    scenario.make_crd(scenario.crd(versions))
    foos = scenario.path("foos")
    scenario.post(foos, scenario.object("old", spec={"n": 1}))
    scenario.post(
        foos, scenario.object("held", spec={"n": 1}, metadata={"finalizers": ["rec.example/f"]})
    )
    _configure(
        scenario,
        "Validating",
        "echo",
        _hook(scenario, "echo", "echo", rules=[_rule(scenario, "foos", "foos/*")]),
    )
    scenario.post(f"{foos}?fieldManager=m", scenario.object("new", spec={"a": "1"}), "create")
    scenario.post(
        f"{foos}?dryRun=All",
        {**scenario.object("x"), "metadata": {"generateName": "gen-"}},
        "generated",
    )
    scenario.put(f"{foos}/old", scenario.object("old", spec={"n": 2}), "update")
    scenario.merge(f"{foos}/old", {"spec": {"n": 3}}, "patch")
    scenario.apply(
        f"{foos}/old", scenario.object("old", spec={"a": "2"}), "ann", "apply", force=True
    )
    scenario.apply(
        f"{foos}/fresh", scenario.object("fresh", spec={"a": "2"}), "ann", "apply of a new one"
    )
    scenario.merge(f"{foos}/old/status", {"status": {"n": 3}}, "status")
    scenario.merge(f"{foos}/old/scale", {"spec": {"replicas": 3}}, "scale")
    scenario.delete(f"{foos}/old", None, "delete")
    scenario.delete(
        f"{foos}/old",
        {"gracePeriodSeconds": 3, "propagationPolicy": "Orphan", "dryRun": ["All"]},
        "delete with options",
    )
    scenario.delete(f"{foos}?labelSelector=none", None, "delete of none")
    scenario.delete(f"{foos}?fieldSelector=metadata.name=old", None, "delete of a collection")
    scenario.put(
        scenario.path("foos", "old", version="v2"),
        scenario.object("old", version="v2", spec={"n": 9}),
        "at another version",
    )
    scenario.merge(f"{foos}/held", {"metadata": {"finalizers": None}}, "finalizers")
    return scenario


_MATCHES: list[Any] = [
    {"matchConditions": [{"name": "yes", "expression": "true"}]}, {"matchConditions": [{"name": "no", "expression": "false"}]},
    {"matchConditions": [{"name": "name", "expression": "object.metadata.name == 'x'"}]}, {"matchConditions": [{"name": "fails", "expression": "object.spec.none == 1"}]},
    {"matchConditions": [{"name": "fails", "expression": "object.spec.none == 1"}], "failurePolicy": "Ignore"}, {"matchConditions": [{"name": "user", "expression": "request.userInfo.username == 'admin'"}]},
    {"matchConditions": [{"name": "old", "expression": "oldObject == null"}]}, {"rules": [{"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["foos"]}]},
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooks-matching"}}}, {"namespaceSelector": {"matchLabels": {"none": "x"}}},
    {"matchConditions": [{"name": "a", "expression": "object.spec.none == 1"}, {"name": "b", "expression": "false"}]},
]  # fmt: skip


def _matching() -> Scenario:
    scenario = Scenario("hooks-matching")
    scenario.make_crd(scenario.crd(_SCHEMA))
    hooks = [
        _hook(scenario, f"m{place}", "deny", **{**_by_label(f"m{place}"), **more})
        for place, more in enumerate(_MATCHES)
    ]
    _configure(scenario, "Validating", "match", *hooks)
    for place in range(len(_MATCHES)):
        scenario.post(
            f"{scenario.path('foos')}?dryRun=All",
            _labelled(scenario, f"m{place}", spec={"a": "1"}),
            f"m{place}",
        )
    return scenario


def _policy(scenario: Scenario, name: str, kind: str = "Validating", **spec: Any) -> Object:
    constraints = {"resourceRules": [_rule(scenario, operations=["CREATE", "UPDATE"])]}
    whole = f"{scenario.name}-{name}"
    made: Object = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}AdmissionPolicy",
        "metadata": {"name": whole},
        "spec": {"matchConstraints": constraints, **spec},
    }
    return made


def _bind(scenario: Scenario, name: str, kind: str = "Validating", **spec: Any) -> Object:
    whole = f"{scenario.name}-{name}"
    actions = {"validationActions": ["Deny"]} if kind == "Validating" else {}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": {"name": whole},
        "spec": {"policyName": whole, **actions, **spec},
    }


_VALIDATIONS: list[Any] = [
    {"expression": "object.spec.n < 5"}, {"expression": "object.spec.n < 5", "message": "n is large"}, {"expression": "object.spec.n < 5", "messageExpression": "'n is ' + string(object.spec.n)"},
    {"expression": "object.spec.n < 5", "reason": "Forbidden"}, {"expression": "object.spec.n < 5", "reason": "RequestEntityTooLarge", "message": "too large"}, {"expression": "object.spec.n < 5", "reason": "Unauthorized"},
    {"expression": "object.spec.none == 1"}, {"expression": "has(object.spec.a)"}, {"expression": "oldObject == null"}, {"expression": "request.operation == 'UPDATE'"}, {"expression": "request.userInfo.username == 'x'"},
    {"expression": "namespaceObject.metadata.name == 'other'"}, {"expression": "authorizer.group('').resource('pods').check('get').allowed()"}, {"expression": "variables.big"},
    {"expression": "object.spec.n < 5", "messageExpression": "1 / 0 == 1 ? 'a' : 'b'"}, {"expression": "1 / 0 == 1"}, {"expression": "object.metadata.name.startsWith('x')"}, {"expression": "params == null"},
]  # fmt: skip
_REFUSED: list[Any] = [
    {"validations": []}, {}, {"validations": [{"expression": ""}]}, {"validations": [{"expression": "("}]}, {"validations": [{"expression": "object.x"}]}, {"validations": [{"expression": "1"}]},
    {"validations": [{"expression": "true", "reason": "Other"}]}, {"validations": [{"expression": "true", "message": " "}]}, {"validations": [{"expression": "true", "message": "a\nb"}]},
    {"validations": [{"expression": "true", "messageExpression": "1"}]}, {"validations": [{"expression": "true", "messageExpression": "none"}]}, {"validations": [{"expression": "params.x == 1"}]},
    {"validations": [{"expression": "variables.none"}]}, {"failurePolicy": "Other", "validations": [{"expression": "true"}]}, {"auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]},
    {"auditAnnotations": [{"key": "", "valueExpression": "'v'"}]}, {"auditAnnotations": [{"key": "k", "valueExpression": "1"}]}, {"auditAnnotations": [{"key": "k k", "valueExpression": "'v'"}]},
    {"variables": [{"name": "v", "expression": "1"}, {"name": "v", "expression": "2"}], "validations": [{"expression": "true"}]}, {"variables": [{"name": "1v", "expression": "1"}], "validations": [{"expression": "true"}]},
    {"variables": [{"name": "v", "expression": "variables.w"}], "validations": [{"expression": "true"}]}, {"paramKind": {"apiVersion": "v1", "kind": ""}, "validations": [{"expression": "true"}]},
    {"paramKind": {"apiVersion": "a/b/c", "kind": "K"}, "validations": [{"expression": "params.x == 1"}]}, {"matchConstraints": None, "validations": [{"expression": "true"}]}, {"matchConstraints": {}, "validations": [{"expression": "true"}]},
    {"matchConstraints": {"resourceRules": [{}]}, "validations": [{"expression": "true"}]}, {"matchConditions": [{"name": "a", "expression": "1"}], "validations": [{"expression": "true"}]},
    {"matchConditions": [{"name": "", "expression": "true"}], "validations": [{"expression": "true"}]}, {"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}], "validations": [{"expression": "true"}]},
]  # fmt: skip
_BINDINGS: list[Any] = [
    {}, {"policyName": ""}, {"policyName": "Bad_Name"}, {"validationActions": []}, {"validationActions": ["Deny", "Warn"]}, {"validationActions": ["Deny", "Deny"]}, {"validationActions": ["Other"]}, {"validationActions": ["Warn", "Audit"]},
    {"paramRef": {}}, {"paramRef": {"name": "p"}}, {"paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}}, {"paramRef": {"name": "p", "selector": {}, "parameterNotFoundAction": "Allow"}},
    {"paramRef": {"name": "p", "parameterNotFoundAction": "Other"}}, {"paramRef": {"selector": {}, "parameterNotFoundAction": "Deny"}}, {"matchResources": {}}, {"matchResources": {"resourceRules": [{}]}}, {"matchResources": {"matchPolicy": "Other"}},
]  # fmt: skip


def _policies() -> Iterator[Scenario]:
    scenario = Scenario("policies-refused")
    policies, bindings = (
        f"/apis/{_GROUP}/v1/validatingadmissionpolic{end}?dryRun=All"
        for end in ("ies", "ybindings")
    )
    for spec in _REFUSED:
        scenario.post(policies, _policy(scenario, "p", **spec))
    for spec in _BINDINGS:
        scenario.post(bindings, _bind(scenario, "p", **spec))
    yield scenario
    for part, action in enumerate((["Deny"], ["Warn"], ["Warn", "Audit"])):
        scenario = Scenario(f"policies-{part}")
        scenario.make_crd(scenario.crd(_SCHEMA))
        for place, validation in enumerate(_VALIDATIONS):
            more: Object = (
                {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
                if "params" in str(validation)
                else {}
            )
            chosen: Any = {
                "matchConditions": [
                    {"name": "chosen", "expression": f"object.metadata.labels.hook == 'p{place}'"}
                ]
            }
            body = _policy(
                scenario,
                f"p{place}",
                validations=[validation],
                variables=[{"name": "big", "expression": "object.spec.n < 5"}],
                **more,
                **chosen,
            )
            scenario.post(
                f"/apis/{_GROUP}/v1/validatingadmissionpolicies", body, "policy", only_failure=True
            )
            scenario.post(
                f"/apis/{_GROUP}/v1/validatingadmissionpolicybindings",
                _bind(scenario, f"p{place}", validationActions=action),
                "binding",
                only_failure=True,
                pause=4.0 if place == len(_VALIDATIONS) - 1 else 0.0,
            )
        for place in range(len(_VALIDATIONS)):
            for number in (1, 9):
                body = scenario.object(
                    "y", spec={"n": number}, metadata={"labels": {"hook": f"p{place}"}}
                )
                scenario.post(
                    f"{scenario.path('foos')}?dryRun=All", body, f"p{place}", only_failure=True
                )
        yield scenario


_MUTATIONS: list[Any] = [
    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{spec: Object.spec{a: 'set'}}"}},
    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}"}},
    {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/spec/a', value: 'patched'}]"}},
    {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'replace', path: '/spec/none', value: 'x'}]"}},
    {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/spec/n', value: 5}, JSONPatch{op: 'remove', path: '/spec/n'}]"}},
    {"patchType": "JSONPatch", "jsonPatch": {"expression": "object.spec.n > 5 ? [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'n': 'large'}}] : []"}},
    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{spec: Object.spec{n: object.spec.n + 1}}"}},
    {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/spec/n', value: 'text'}]"}},
]  # fmt: skip
_BAD_MUTATIONS: list[Any] = [
    [], [{}], [{"patchType": "Other"}], [{"patchType": "JSONPatch"}], [{"patchType": "JSONPatch", "jsonPatch": {"expression": ""}}], [{"patchType": "JSONPatch", "jsonPatch": {"expression": "1"}}],
    [{"patchType": "JSONPatch", "jsonPatch": {"expression": "("}}], [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "'x'"}}], [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{none: 1}"}}],
    [{"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[]"}}],
]  # fmt: skip


def _mutating_policies() -> Iterator[Scenario]:
    policies, bindings = (
        f"/apis/{_GROUP}/v1/mutatingadmissionpolic{end}" for end in ("ies", "ybindings")
    )
    scenario = Scenario("mutating-policies")
    scenario.make_crd(scenario.crd(_SCHEMA))
    for mutations in _BAD_MUTATIONS:
        scenario.post(
            f"{policies}?dryRun=All",
            _policy(scenario, "bad", "Mutating", mutations=mutations, reinvocationPolicy="Never"),
        )
    scenario.post(
        f"{policies}?dryRun=All",
        _policy(scenario, "bad", "Mutating", mutations=_MUTATIONS[:1]),
        "no reinvocation",
    )
    for place, mutation in enumerate(_MUTATIONS):
        chosen: Any = {
            "matchConditions": [
                {"name": "chosen", "expression": f"object.metadata.labels.hook == 'p{place}'"}
            ]
        }
        scenario.post(
            policies,
            _policy(
                scenario,
                f"p{place}",
                "Mutating",
                mutations=[mutation],
                reinvocationPolicy="Never",
                **chosen,
            ),
            "policy",
            only_failure=True,
        )
        scenario.post(
            bindings,
            _bind(scenario, f"p{place}", "Mutating"),
            "binding",
            only_failure=True,
            pause=4.0 if place == len(_MUTATIONS) - 1 else 0.0,
        )
    for place in range(len(_MUTATIONS)):
        for number in (5, 9):
            body = scenario.object(
                "y", spec={"n": number}, metadata={"labels": {"hook": f"p{place}"}}
            )
            scenario.post(f"{scenario.path('foos')}?dryRun=All", body, f"p{place}")
    yield scenario


def scenarios() -> Iterator[Scenario]:
    yield from _behaviours()
    yield _requests()
    yield _matching()
    yield from _policies()
    yield from _mutating_policies()
