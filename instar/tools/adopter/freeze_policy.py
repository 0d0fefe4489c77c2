"""The policy that refuses every write to a group while it is moved. Pure.

The main cluster enforces it for the objects in etcd, and instar, which follows the policies of the
main cluster, for the objects that it serves. It also refuses one ConfigMap name, by which
``cluster.py`` proves that an API server enforces it.
"""

from __future__ import annotations

from instar.base.json_values import Object

CANARY_NAMESPACE = "default"
_GROUP = "admissionregistration.k8s.io"
POLICIES = f"/apis/{_GROUP}/v1/validatingadmissionpolicies"
BINDINGS = f"/apis/{_GROUP}/v1/validatingadmissionpolicybindings"
LABELS = {"app.kubernetes.io/managed-by": "instar-adopt"}


def policy_name(group: str) -> str:
    """Return the name of the policy and its binding for a group."""
    return f"instar-adopt-{group}"


def policy(group: str, writer: str = "", manager: str = "") -> Object:
    """Return the policy; with ``writer`` it lets this user write as this field manager, and
    delete."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy_name(group), "labels": LABELS},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": ["*/*"],
                    },
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                        "resourceNames": [canary_name(group)],
                    },
                ]
            },
            "validations": [
                {
                    "expression": _allowed(writer, manager),
                    "message": f"{group} is being moved by instar adopt; try again soon",
                    "reason": "Forbidden",
                }
            ],
        },
    }


def binding(group: str) -> Object:
    """Return the binding that enforces the policy everywhere."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy_name(group), "labels": LABELS},
        "spec": {"policyName": policy_name(group), "validationActions": ["Deny"]},
    }


def canary_name(group: str) -> str:
    """Return the name of the ConfigMap that is refused while a group is frozen."""
    return f"instar-adopt-canary-{group}"


def canary(group: str) -> Object:
    """Return the ConfigMap that an API server refuses while it enforces the policy."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": canary_name(group), "namespace": CANARY_NAMESPACE},
    }


def _allowed(writer: str, manager: str) -> str:
    if not writer:
        return "false"
    user = writer.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f'request.resource.group != "" && request.userInfo.username == "{user}" && '
        f'(request.operation == "DELETE" || has(request.options.fieldManager) && '
        f'request.options.fieldManager == "{manager}")'
    )
