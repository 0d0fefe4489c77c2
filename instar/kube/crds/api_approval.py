"""The ``api-approved.kubernetes.io`` annotation of CRDs in protected groups (``*.k8s.io``).

``validation/crd.py`` rejects CRDs without it, ``conditions.py`` sets the condition from it.
"""

from __future__ import annotations

from enum import Enum
from urllib.parse import urlsplit

from instar.base.field_errors import FieldError, invalid, key, required
from instar.base.json_values import Object

ANNOTATION = "api-approved.kubernetes.io"
_WHY = "see https://github.com/kubernetes/enhancements/pull/1111"
_MISSING_TEXT = f'protected groups must have approval annotation "{ANNOTATION}", {_WHY}'
_INVALID_TEXT = (
    f'protected groups must have approval annotation "{ANNOTATION}" with either a URL or a '
    f'reason starting with "unapproved", {_WHY}'
)
_PROTECTED_GROUPS = ("k8s.io", "kubernetes.io")


class Approval(Enum):
    """State of the approval; the value is the condition's reason."""

    APPROVED = "ApprovedAnnotation"
    BYPASSED = "UnapprovedAnnotation"
    MISSING = "MissingAnnotation"
    INVALID = "InvalidAnnotation"


def is_protected(group: str) -> bool:
    return group in _PROTECTED_GROUPS or group.endswith(
        tuple(f".{name}" for name in _PROTECTED_GROUPS)
    )


def approval_of(annotation: str) -> tuple[Approval, str]:
    """Return the state and the condition's message."""
    if not annotation:
        return Approval.MISSING, _MISSING_TEXT
    if annotation.startswith("unapproved"):
        return Approval.BYPASSED, f'not approved: "{annotation}"'
    if _is_absolute_url(annotation):
        return Approval.APPROVED, f"approved in {annotation}"
    return Approval.INVALID, _INVALID_TEXT


def approval_errors(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of a write; none if the state did not change, so that old CRDs stay
    valid."""
    if not is_protected(new["spec"].get("group", "")):
        return []
    annotation = _annotation(new)
    state, message = approval_of(annotation)
    if old is not None and approval_of(_annotation(old))[0] is state:
        return []
    path = key("metadata.annotations", ANNOTATION)
    if state is Approval.MISSING:
        return [required(path, message)]
    if state is Approval.INVALID:
        return [invalid(path, annotation, message)]
    return []


def _annotation(crd: Object) -> str:
    return str((crd["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def _is_absolute_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)
