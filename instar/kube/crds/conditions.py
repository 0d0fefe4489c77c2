"""Computes the status conditions of a CRD: NamesAccepted, Established, NonStructuralSchema …

Called by ``lifecycle.py`` and the CRD controller (``server/registry/controllers/crds.py``), which
writes the result. Upstream does this in six controllers. Each function takes a v1 CRD and returns
its new status, or the same status object when nothing changes; ``now`` is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from instar.base.json_values import Object, same_json
from instar.kube.crds.api_approval import ANNOTATION, Approval, approval_of, is_protected
from instar.kube.crds.name_acceptance import NameAcceptance, decide_names
from instar.kube.crds.nonstructural import schema_violations
from instar.kube.crds.validation.ca_bundle import ca_bundle_problem

ESTABLISHED = "Established"
NAMES_ACCEPTED = "NamesAccepted"
NON_STRUCTURAL = "NonStructuralSchema"
TERMINATING = "Terminating"
API_APPROVED = "KubernetesAPIApprovalPolicyConformant"

_BUILT_IN_NAMES = (
    "apiservices.apiregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
)


def find_condition(status: Object, type: str) -> Object | None:
    return next((item for item in status.get("conditions") or () if item["type"] == type), None)


def is_true(status: Object, type: str) -> bool:
    condition = find_condition(status, type)
    return condition is not None and condition.get("status") == "True"


def with_condition(
    status: Object, type: str, value: str, reason: str, message: str, now: str
) -> Object:
    """Return the status with one condition set: replaced if it exists, else appended."""
    conditions = list(status.get("conditions") or ())
    written = {
        "type": type,
        "status": value,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    for position, existing in enumerate(conditions):
        if existing["type"] == type:
            conditions[position] = _overwrite(existing, written)
            break
    else:
        conditions.append(written)
    return {**status, "conditions": conditions}


def _overwrite(existing: Object, written: Object) -> Object:
    since = existing.get("lastTransitionTime")
    if existing.get("status") == written["status"] and since:
        written = {**written, "lastTransitionTime": since}
    return {**existing, **written}


def without_condition(status: Object, type: str) -> Object:
    if find_condition(status, type) is None:
        return status
    kept = [item for item in status["conditions"] if item["type"] != type]
    return {**status, "conditions": kept or None}


def name_status(crd: Object, others: Sequence[Object], now: str) -> Object:
    """Return the status with accepted names, ``NamesAccepted`` and the first ``Established``."""
    status: Object = crd["status"]
    naming = decide_names(crd, others)
    if naming is None:
        return status
    existing = find_condition(status, NAMES_ACCEPTED)
    unchanged = same_json(status.get("acceptedNames"), naming.accepted)
    if unchanged and existing is not None and _matches_acceptance(existing, naming):
        return status
    value = "True" if naming.ok else "False"
    out = {**status, "acceptedNames": naming.accepted}
    out = with_condition(out, NAMES_ACCEPTED, value, naming.reason, naming.message, now)
    return _first_established(out, naming.ok, now)


def _matches_acceptance(condition: Object, naming: NameAcceptance) -> bool:
    return (condition.get("status"), condition.get("reason"), condition.get("message")) == (
        "True" if naming.ok else "False",
        naming.reason,
        naming.message,
    )


def _first_established(status: Object, accepted: bool, now: str) -> Object:
    if is_true(status, ESTABLISHED):
        return status
    if accepted:
        message = "the initial names have been accepted"
        return with_condition(status, ESTABLISHED, "False", "Installing", message, now)
    if find_condition(status, ESTABLISHED) is None:
        message = "not all names are accepted"
        return with_condition(status, ESTABLISHED, "False", "NotAccepted", message, now)
    return status


def established_status(crd: Object, now: str) -> Object:
    """Return the status with ``Established`` once names are accepted, unless the CA bundle is
    invalid."""
    status: Object = crd["status"]
    if not is_true(status, NAMES_ACCEPTED) or is_true(status, ESTABLISHED):
        return status
    if ca_bundle_problem(_ca_bundle(crd)) is None:
        message = "the initial names have been accepted"
        out = with_condition(status, ESTABLISHED, "True", "InitialNamesAccepted", message, now)
    else:
        message = "The conversion webhook CABundle is invalid"
        out = with_condition(status, ESTABLISHED, "False", "InvalidCABundle", message, now)
    return status if same_json(out, status) else out


def _ca_bundle(crd: Object) -> str:
    webhook = (crd["spec"].get("conversion") or {}).get("webhook") or {}
    return (webhook.get("clientConfig") or {}).get("caBundle") or ""


def structural_status(crd: Object, now: str) -> Object:
    """Return the status with ``NonStructuralSchema``, which only CRDs from before v1 can have."""
    status: Object = crd["status"]
    value, reason, message = schema_violations(crd["spec"])
    if not reason:
        return without_condition(status, NON_STRUCTURAL)
    out = with_condition(status, NON_STRUCTURAL, value, reason, message, now)
    return status if same_json(out, status) else out


def approval_status(crd: Object, now: str) -> Object:
    """Return the status with the API approval condition of a protected group."""
    status: Object = crd["status"]
    if not is_protected(crd["spec"].get("group", "")):
        return status
    annotation = (crd["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    state, message = approval_of(annotation)
    value = "True" if state is Approval.APPROVED else "False"
    out = with_condition(status, API_APPROVED, value, state.value, message, now)
    return status if same_json(out, status) else out


def pending_deletion(status: Object, now: str) -> Object:
    """Return the status with the condition Terminating: deletion is pending."""
    message = (
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    )
    return with_condition(status, TERMINATING, "True", "InstanceDeletionPending", message, now)


def deletion_in_progress(status: Object, now: str) -> Object:
    """Return the status with the condition Terminating: objects are being deleted."""
    message = "CustomResource deletion is in progress"
    return with_condition(status, TERMINATING, "True", "InstanceDeletionInProgress", message, now)


def deletion_skipped(crd: Object, now: str) -> Object | None:
    """Return the final status of a CRD that deletes no instances (never established, or
    overlapping a built-in resource); None for all others."""
    status: Object = crd["status"]
    if crd["metadata"].get("name") in _BUILT_IN_NAMES:
        message = "instances overlap with built-in resources in storage"
        reason = "OverlappingBuiltInResource"
        return with_condition(status, TERMINATING, "False", reason, message, now)
    if not is_true(status, ESTABLISHED):
        message = "resource was never established"
        return with_condition(status, TERMINATING, "False", "NeverEstablished", message, now)
    return None


def deletion_failed(status: Object, message: str, now: str) -> Object:
    """``message`` is ``could not list instances: …`` or ``could not issue all deletes: …``."""
    return with_condition(status, TERMINATING, "True", "InstanceDeletionFailed", message, now)


def deletion_unconfirmed(status: Object, problem: str, now: str) -> Object:
    message = f"could not confirm zero CustomResources remaining: {problem}"
    return with_condition(status, TERMINATING, "True", "InstanceDeletionCheck", message, now)


def deletion_completed(status: Object, now: str) -> Object:
    """Return the status with the condition Terminating: all objects are deleted."""
    message = "removed all instances"
    return with_condition(status, TERMINATING, "False", "InstanceDeletionCompleted", message, now)
