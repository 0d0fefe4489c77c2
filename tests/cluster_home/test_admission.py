"""Admission by the main cluster's namespaces, policies, webhooks and quotas."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tests.support.main_cluster import GROUP, Aggregated, aggregated, report
from tests.support.waiting import eventually

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_MERGE = "application/merge-patch+json"


def _namespace(both: Aggregated, name: str, labels: dict[str, str] | None = None) -> str:
    both.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})
    return f"/apis/{GROUP}/v1/namespaces/{name}/reports"


def _policy(both: Aggregated, name: str, namespace: str, **spec: Any) -> None:
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["reports"],
    }
    constraints = {
        "resourceRules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    path = f"{_ADMISSION}/validatingadmissionpolicies"
    both.create(
        path, {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, **spec}}
    )


def _bind(both: Aggregated, name: str, **spec: Any) -> None:
    path = f"{_ADMISSION}/validatingadmissionpolicybindings"
    bound = {"policyName": name, "validationActions": ["Deny"], **spec}
    both.create(path, {"metadata": {"name": name}, "spec": bound})


def _refused(both: Aggregated, path: str, obj: dict[str, Any], user: str = "joe") -> str:
    """Return the message once the object is refused; a policy is followed, so it takes a moment."""

    def message() -> str:
        answer = both.proxied("POST", f"{path}?dryRun=All", obj, user=user)
        return "" if answer.status == 201 else str(answer.json["message"])

    return eventually(message)


def test_a_namespace_that_was_just_created_takes_objects(both: Aggregated) -> None:
    path = _namespace(both, "fresh")

    made = both.proxied("POST", path, report("a", namespace="fresh"))

    assert made.status == 201, made.text


def test_a_namespace_that_does_not_exist_takes_none(both: Aggregated) -> None:
    path = f"/apis/{GROUP}/v1/namespaces/nowhere/reports"

    refused = both.proxied("POST", path, report("a", namespace="nowhere"))

    assert refused.status == 404
    assert refused.json["message"] == 'namespaces "nowhere" not found'


def test_a_terminating_namespace_takes_none(both: Aggregated) -> None:
    path = _namespace(both, "leaving")
    both.main.request(
        "PUT",
        "/api/v1/namespaces/leaving",
        {
            "metadata": {"name": "leaving", "finalizers": ["example.com/hold"]},
        },
    )
    both.main.request("DELETE", "/api/v1/namespaces/leaving")

    message = _refused(both, path, report("a", namespace="leaving"))

    assert "because it is being terminated" in message


def test_a_policy_of_the_main_cluster_refuses(both: Aggregated) -> None:
    path = _namespace(both, "guarded")
    small = {"expression": "object.spec.size < 10", "message": "too large"}
    _policy(both, "small", "guarded", validations=[small])
    _bind(both, "small")

    message = _refused(both, path, report("a", 10, "guarded"))

    assert "ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too large" in (
        message
    )
    assert both.proxied("POST", path, report("b", 9, "guarded")).status == 201


def test_a_policy_reads_its_parameters_from_the_main_cluster(both: Aggregated) -> None:
    path = _namespace(both, "limited")
    both.create(
        "/api/v1/namespaces/limited/configmaps",
        {"metadata": {"name": "limit", "namespace": "limited"}, "data": {"most": "5"}},
    )
    within = {"expression": "object.spec.size <= int(params.data.most)"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    _policy(both, "within", "limited", validations=[within], paramKind=kind)
    ref = {"name": "limit", "parameterNotFoundAction": "Deny"}
    _bind(both, "within", paramRef=ref)

    message = _refused(both, path, report("a", 6, "limited"))
    assert "failed expression: object.spec.size <= int(params.data.most)" in message
    assert both.proxied("POST", path, report("b", 5, "limited")).status == 201

    changed = {"data": {"most": "9"}}
    both.main.request(
        "PATCH",
        "/api/v1/namespaces/limited/configmaps/limit",
        changed,
        content_type=_MERGE,
    )
    eventually(lambda: both.proxied("POST", path, report("c", 9, "limited")).status == 201)


def test_a_parameter_kind_that_the_main_cluster_does_not_serve_follows_the_failure_policy(
    both: Aggregated,
) -> None:
    path = _namespace(both, "unknown")
    always = {"expression": "true"}
    kind = {"apiVersion": "nothing.example.com/v1", "kind": "Nothing"}
    _policy(both, "unserved", "unknown", validations=[always], paramKind=kind)
    ref = {"name": "x", "parameterNotFoundAction": "Deny"}
    _bind(both, "unserved", paramRef=ref)

    message = _refused(both, path, report("a", namespace="unknown"))

    assert "failed to find resource referenced by paramKind" in message


def test_a_policy_sees_the_main_clusters_namespace_and_authorizer(both: Aggregated) -> None:
    path = _namespace(both, "seen", {"team": "red"})
    checks = [
        {"expression": "namespaceObject.metadata.labels.team == 'red'", "message": "no red team"},
        {
            "expression": "authorizer.group('').resource('secrets').namespace('seen')"
            ".check('get').allowed()",
            "message": "may not read secrets",
        },
    ]
    _policy(both, "seeing", "seen", validations=checks)
    _bind(both, "seeing")
    rules = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    both.create(f"{rbac}/clusterroles", {"metadata": {"name": "writer"}, "rules": rules})
    both.create(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": "writer"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "writer",
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "writer"}
            ],
        },
    )

    def refused() -> str:
        obj = report("a", namespace="seen")
        answer = both.proxied("POST", f"{path}?dryRun=All", obj, user="writer", groups=())
        return "" if answer.status == 201 else answer.text

    assert "may not read secrets" in eventually(refused)
    assert both.proxied("POST", path, report("b", namespace="seen")).status == 201


def test_a_mutating_policy_of_the_main_cluster_changes_objects(both: Aggregated) -> None:
    path = _namespace(both, "changed")
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["reports"],
    }
    apply = {"expression": "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}"}
    spec = {
        "matchConstraints": {
            "resourceRules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "changed"}},
        },
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": apply}],
    }
    both.create(
        f"{_ADMISSION}/mutatingadmissionpolicies", {"metadata": {"name": "mark"}, "spec": spec}
    )
    both.create(
        f"{_ADMISSION}/mutatingadmissionpolicybindings",
        {"metadata": {"name": "mark"}, "spec": {"policyName": "mark"}},
    )

    def marked() -> bool:
        obj = report("a", namespace="changed")
        made = both.proxied("POST", f"{path}?dryRun=All", obj).json
        return "labels" in made["metadata"]

    assert eventually(marked)


def test_a_webhook_of_the_main_cluster_that_cannot_be_reached_fails_closed(
    both: Aggregated,
) -> None:
    path = _namespace(both, "hooked")
    hook: dict[str, Any] = {
        "name": "closed.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 2,
        "failurePolicy": "Fail",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooked"}},
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": ["*"],
                "operations": ["CREATE"],
                "resources": ["reports"],
            }
        ],
    }
    for kind in ("validating", "mutating"):
        made = copy.deepcopy(hook)
        made["name"] = f"{kind}.example.com"
        configuration = {"metadata": {"name": kind}, "webhooks": [made]}
        both.create(f"{_ADMISSION}/{kind}webhookconfigurations", configuration)

    message = _refused(both, path, report("a", namespace="hooked"))

    assert "failed calling webhook" in message
    assert both.proxied("GET", path).status == 200


def test_a_quota_of_the_main_cluster_is_enforced(both: Aggregated) -> None:
    path = _namespace(both, "counted")
    hard = {f"count/reports.{GROUP}": "2"}
    both.create(
        "/api/v1/namespaces/counted/resourcequotas",
        {"metadata": {"name": "few", "namespace": "counted"}, "spec": {"hard": hard}},
    )
    assert both.proxied("POST", path, report("a", namespace="counted")).status == 201
    assert both.proxied("POST", path, report("b", namespace="counted")).status == 201

    message = _refused(both, path, report("c", namespace="counted"))

    assert "exceeded quota: few" in message


def test_the_status_of_a_quota_is_charged(both: Aggregated) -> None:
    path = _namespace(both, "charged")
    name = f"count/reports.{GROUP}"
    quotas = "/api/v1/namespaces/charged/resourcequotas"
    spec = {"hard": {name: "5"}}
    both.create(quotas, {"metadata": {"name": "some", "namespace": "charged"}, "spec": spec})

    def used() -> str:
        status = both.main.request("GET", f"{quotas}/some").json.get("status") or {}
        return str((status.get("used") or {}).get(name, ""))

    for number in range(3):
        obj = report(f"r{number}", namespace="charged")
        assert both.proxied("POST", path, obj).status == 201
    eventually(lambda: used() == "3")
    both.proxied("DELETE", f"{path}/r0")
    eventually(lambda: used() == "2")


def test_writes_go_on_with_a_warning_while_the_main_cluster_is_away(tmp_path: Path) -> None:
    with aggregated(tmp_path) as both:
        path = f"/apis/{GROUP}/v1/namespaces/default/reports"
        before = both.proxied("POST", path, report("before"))
        both.stop_main()

        def warned() -> bool:
            answer = both.proxied("POST", f"{path}?dryRun=All", report("after"))
            assert answer.status == 201, answer.text
            return bool(answer.warnings)

        assert not before.warnings
        eventually(warned)
        assert both.proxied("GET", f"{path}/before").status == 200
        assert both.served.request("GET", "/readyz", token=None).status == 200
        elsewhere = f"/apis/{GROUP}/v1/namespaces/unseen/reports"
        refused = both.proxied("POST", elsewhere, report("a", namespace="unseen"))
        assert refused.status == 503
        assert "cannot be asked for the namespace unseen" in refused.text
