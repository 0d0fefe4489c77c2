"""The policy that protects what an adopted group needs in the main cluster. Pure.

``cluster.py`` applies it with the freeze of an adoption, and deletes it before the group goes back.
Deleting a CRD would delete its objects in etcd, and end their serving by instar. Without its
APIService a version is served from etcd, where the objects are as they were at the adoption; so is
a version that a CRD serves before it is routed (``--add-version``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from instar.base.json_values import Object
from instar.tools.adopter.freeze_policy import LABELS

_GROUP = "admissionregistration.k8s.io"
_CRD = 'request.resource.resource == "customresourcedefinitions"'
_SUBJECT = '(request.operation == "DELETE" ? oldObject : object)'


def protection_name(group: str) -> str:
    """Return the name of the policy and its binding for a group."""
    return f"instar-adopted-{group}"


def protection(group: str, versions: Iterable[str]) -> Object:
    """Return the policy; ``versions`` are those that are routed to instar."""
    routed = json.dumps(sorted(versions))
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": protection_name(group), "labels": LABELS},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    _rule("apiextensions.k8s.io", "customresourcedefinitions", "CREATE", "DELETE"),
                    _rule("apiregistration.k8s.io", "apiservices", "DELETE"),
                ]
            },
            "matchConditions": [
                {"name": "of-the-group", "expression": f'{_SUBJECT}.spec.group == "{group}"'}
            ],
            "validations": [
                _validation(
                    f'!({_CRD} && request.operation == "DELETE")',
                    f"instar serves {group}: without this CRD clients reach none of its objects, "
                    "and the cluster deletes those in etcd; move the group back with "
                    f"'instar adopt --return {group}' first",
                ),
                _validation(
                    f'!({_CRD} && request.operation != "DELETE") || '
                    f"object.spec.versions.all(each, !each.served || each.name in {routed})",
                    f"instar serves {group}, and a new version would be served from etcd, without "
                    f"later changes; run 'instar adopt {group} --add-version VERSION' first",
                ),
                _validation(
                    f'{_CRD} || request.operation != "DELETE" && ({_NEVER_ROUTED} || {_ROUTED})',
                    f"instar serves {group}: without this route clients would see the objects "
                    "that etcd has, without later changes; move the group back with "
                    f"'instar adopt --return {group}' instead",
                ),
            ],
        },
    }


_NEVER_ROUTED = "!has(oldObject.spec.service)"
_ROUTED = "has(object.spec.service) && object.spec.service == oldObject.spec.service"


def protection_binding(group: str) -> Object:
    """Return the binding that enforces the policy."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": protection_name(group), "labels": LABELS},
        "spec": {"policyName": protection_name(group), "validationActions": ["Deny"]},
    }


def _validation(expression: str, message: str) -> Object:
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _rule(group: str, plural: str, *operations: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": [*operations, "UPDATE"],
        "resources": [plural],
    }
