"""API error classes: every failure that a client can cause, as a Kubernetes ``Status``.

All packages raise these errors; ``server/rest/error_responses.py`` and the CLI render them. Each
class has its HTTP code and reason; ``to_status`` is the only place that builds the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from instar.base.field_errors import FieldError, errors_to_report, messages


class ApiError(Exception):
    """A failure that the API reports as a ``Status``."""

    code: int = 500
    reason: str = ""
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after: int = 0,
        list_meta: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.list_meta = list_meta or {}

    def to_status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = dict(self.details) if self.details is not None else None
        if self.retry_after:
            details = {**(details or {}), "retryAfterSeconds": self.retry_after}
        if details is not None:
            status["details"] = details
        status["code"] = self.code
        return status


class BadRequest(ApiError):
    code = 400
    reason = "BadRequest"


class Undecodable(BadRequest):
    """A document that cannot be decoded as its kind; ``why`` is the decoder's message."""

    def __init__(self, message: str, why: str, restored: str = "") -> None:
        """``restored`` is the message for a document that was decoded from values, not from
        text."""
        super().__init__(message)
        self.why = why
        self.restored = restored or why


class Unauthorized(ApiError):
    code = 401
    reason = "Unauthorized"

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(ApiError):
    code = 403
    reason = "Forbidden"


class AccessDenied(Forbidden):
    """Denied by the authorizer, before the object was looked up."""


class NotFound(ApiError):
    code = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    code = 406
    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    code = 409
    reason = "AlreadyExists"


class Conflict(ApiError):
    code = 409
    reason = "Conflict"


class Expired(ApiError):
    code = 410
    reason = "Expired"


class RequestTooLarge(ApiError):
    code = 413
    reason = "RequestEntityTooLarge"

    def __init__(self, detail: str) -> None:
        super().__init__(f"Request entity too large: {detail}")


class UnsupportedMediaType(ApiError):
    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    code = 429
    reason = "TooManyRequests"
    retryable = True


class Internal(ApiError):
    """A failure that kube-apiserver reports as ``InternalError`` with its usual prefix."""

    reason = "InternalError"
    retryable = True

    def __init__(self, text: str) -> None:
        super().__init__(
            f"Internal error occurred: {text}", details={"causes": [{"message": text}]}
        )


class Unclassified(ApiError):
    """A bare Go error of kube-apiserver: 500, the raw text, no reason and no details."""

    retryable = True


class ServiceUnavailable(ApiError):
    code = 503
    reason = "ServiceUnavailable"
    retryable = True


class Timeout(ApiError):
    code = 504
    reason = "Timeout"
    retryable = True

    def __init__(self, detail: str, **kwargs: Any) -> None:
        super().__init__(f"Timeout: {detail}", **kwargs)


def qualified(name: str, group: str) -> str:
    """Return ``name.group``, as kube-apiserver prints a group-resource or group-kind."""
    return f"{name}.{group}" if group else name


def _details(name: str, group: str, kind: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = kind
    return details


def not_found(group: str, plural: str, name: str) -> NotFound:
    return NotFound(
        f'{qualified(plural, group)} "{name}" not found', details=_details(name, group, plural)
    )


def already_exists(
    group: str, plural: str, name: str, *, terminating: bool = False
) -> AlreadyExists:
    prefix = "object is being deleted: " if terminating else ""
    return AlreadyExists(
        f'{prefix}{qualified(plural, group)} "{name}" already exists',
        details=_details(name, group, plural),
    )


def conflict(group: str, kind: str, name: str, why: str) -> Conflict:
    """Return a Conflict. ``kind`` is the plural for storage conflicts and the Kind for
    preconditions."""
    return Conflict(
        f'Operation cannot be fulfilled on {qualified(kind, group)} "{name}": {why}',
        details=_details(name, group, kind),
    )


def forbidden(group: str, plural: str, name: str, why: str) -> Forbidden:
    """Return the 403 for a request on a resource, with kube-apiserver's text."""
    return Forbidden(
        f'{qualified(plural, group)} "{name}" is forbidden: {why}',
        details=_details(name, group, plural),
    )


def method_not_allowed(group: str, plural: str, verb: str) -> MethodNotAllowed:
    return MethodNotAllowed(
        f'{verb} is not supported on resources of kind "{qualified(plural, group)}"',
        details=_details("", group, plural),
    )


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    details, told = _details(name, group, kind), errors_to_report(errors)
    details["causes"] = causes(told)
    more = "" if len(told) == len(errors) else ", and there are more errors"
    return Invalid(
        f'{qualified(kind, group)} "{name}" is invalid: {messages(told)}{more}', details=details
    )


def invalid_options(kind: str, errors: Sequence[FieldError]) -> Invalid:
    """Return the error of a bad query option: ``CreateOptions.meta.k8s.io "" is invalid: …``."""
    return invalid("meta.k8s.io", kind, "", errors)


def causes(errors: Iterable[FieldError]) -> list[dict[str, str]]:
    """Return the ``details.causes`` of a Status for field errors."""
    return [error.cause() for error in errors]


def from_status(status: Mapping[str, Any], code: int = 500) -> ApiError:
    """Return the error for a received ``Status``; ``code`` is the HTTP status code."""
    chosen = _BY_REASON.get(status.get("reason") or "") or _class_for_code(
        status.get("code") or code
    )
    details = status.get("details")
    error = chosen.__new__(chosen)
    # Bypass the subclass's __init__: some of them add a prefix that this message already has.
    ApiError.__init__(
        error,
        status.get("message") or f"HTTP {code}",
        details=details,
        retry_after=(details or {}).get("retryAfterSeconds") or 0,
        list_meta=status.get("metadata"),
    )
    return error


def _class_for_code(code: int) -> type[ApiError]:
    for kind in _WIRE:
        if kind.code == code and kind is not Internal:
            return kind
    return BadRequest if 400 <= code < 500 else Unclassified


_WIRE: tuple[type[ApiError], ...] = (
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    Conflict,
    AlreadyExists,
    Expired,
    RequestTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    Internal,
    ServiceUnavailable,
    Timeout,
)
_BY_REASON: dict[str, type[ApiError]] = {kind.reason: kind for kind in _WIRE}
