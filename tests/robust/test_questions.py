"""Large bodies that are answered or acted upon, not stored: whoever sends one waits, alone.

Everybody known may ask what they may do, so these are within anybody's reach.
"""

from __future__ import annotations

import pytest

from tests.robust.conftest import THINGS
from tests.robust.victim import Victim

_DEFAULT = "/api/v1/namespaces/default"
_SELF = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MUCH = "\n".join(f"  k{number}: {{a: [1, 2, x]}}" for number in range(60_000))


@pytest.mark.parametrize(
    ("method", "path", "kind", "api_version"),
    [
        ("POST", _SELF, "SelfSubjectAccessReview", "authorization.k8s.io/v1"),
        ("POST", f"{_DEFAULT}/pods/nobody/eviction", "Eviction", "policy/v1"),
        ("POST", f"{_DEFAULT}/pods/nobody/binding", "Binding", "v1"),
        (
            "POST",
            f"{_DEFAULT}/serviceaccounts/nobody/token",
            "TokenRequest",
            "authentication.k8s.io/v1",
        ),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/x/scale", "Scale", "autoscaling/v1"),
        ("DELETE", f"{THINGS}/nobody", "DeleteOptions", "v1"),
    ],
)
def test_a_large_yaml_body_is_read_beside_the_event_loop(
    victim: Victim, method: str, path: str, kind: str, api_version: str
) -> None:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: nobody}}\nx:\n{_MUCH}\n"
    with victim.watched():
        answer = victim.request(method, path, text, content_type="application/yaml")
    assert 400 <= answer.status < 500 or kind == "Binding", answer.text[:300]


def test_a_review_with_a_very_long_selector_is_parsed_beside_the_event_loop(
    victim: Victim,
) -> None:
    selector = ",".join(f"a/n{number} in (x,y)" for number in range(120_000))
    attributes = {"verb": "get", "resource": "pods", "labelSelector": {"rawSelector": selector}}
    with victim.watched():
        answer = victim.request("POST", _SELF, {"spec": {"resourceAttributes": attributes}})
    assert answer.status == 201, answer.text[:300]


def test_a_role_with_very_many_unheld_rules_is_refused_in_a_thread(
    victim: Victim,
) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [roles.split("/")[2]], "resources": ["clusterroles"], "verbs": ["create"]}
    role = {"metadata": {"name": "granting"}, "rules": [rule]}
    binding = {
        "metadata": {"name": "granting"},
        "roleRef": {"apiGroup": roles.split("/")[2], "kind": "ClusterRole", "name": "granting"},
        "subjects": [{"kind": "User", "name": "granter", "apiGroup": roles.split("/")[2]}],
    }
    assert victim.request("POST", f"{roles}/clusterroles", role).status == 201
    assert victim.request("POST", f"{roles}/clusterrolebindings", binding).status == 201
    resources = [f"r{number}" for number in range(20)]
    rules = [
        {"apiGroups": [f"g{number}"], "resources": resources, "verbs": ["get"]}
        for number in range(5_000)
    ]
    much = {"metadata": {"name": "much"}, "rules": rules}
    with victim.watched():
        answer = victim.request(
            "POST", f"{roles}/clusterroles", much, headers={"Impersonate-User": "granter"}
        )
    assert answer.status == 403, answer.text[:300]
    assert "not currently held" in answer.text
