"""Evaluates an admission webhook's response: valid or not, allowed or denied, its patch and
warnings.

Called by ``server/registry/admission/webhooks/call.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.kube.api.admission_review import GROUP, JSON_PATCH, KIND, ParsedAdmissionResponse
from instar.kube.api.encoding.go_json_errors import go_type, syntax_error
from instar.kube.api.encoding.json_text import TooDeep, decode
from instar.kube.patches.json_patch import MAX_OPERATIONS

_INVALID_PREFIX = "received invalid webhook response: "


class BadAnswer(Exception):
    """The response is invalid; the text follows ``failed calling webhook "<name>": ``."""


class WebhookVerdict(NamedTuple):
    """What a webhook's response says: allowed or not, a patch, warnings."""

    allowed: bool
    patch: Sequence[Object] = ()
    """Operations of a JSON patch."""
    status: Object | None = None
    """The webhook's reason for a denial."""
    annotations: Mapping[str, str] = {}
    warnings: Sequence[str] = ()


def verdict_of(
    answer: ParsedAdmissionResponse, version: str, uid: str, *, mutating: bool
) -> WebhookVerdict:
    """Evaluate a response. ``version`` and ``uid`` are the request's. Raises ``BadAnswer``."""
    if not answer.present:
        raise BadAnswer(f"{_INVALID_PREFIX}webhook response was absent")
    if version == "v1":
        _check_type(answer, uid)
    if not mutating:
        _check_unpatched(answer, version)
    patch: Sequence[Object] = ()
    if mutating:
        _check_patch_type(answer, version)
        patch = _operations(answer.patch) if answer.patch and answer.allowed else ()
    return WebhookVerdict(answer.allowed, patch, answer.status, answer.annotations, answer.warnings)


def _check_type(answer: ParsedAdmissionResponse, uid: str) -> None:
    if answer.uid != uid:
        raise BadAnswer(f'{_INVALID_PREFIX}expected response.uid="{uid}", got "{answer.uid}"')
    if (answer.api_version, answer.kind) != (f"{GROUP}/v1", KIND):
        group, _, version = answer.api_version.rpartition("/")
        raise BadAnswer(
            f"{_INVALID_PREFIX}expected webhook response of {GROUP}/v1, Kind={KIND}, got "
            f"{group}/{version}, Kind={answer.kind}"
        )


def _check_unpatched(answer: ParsedAdmissionResponse, version: str) -> None:
    if version != "v1":
        return
    if answer.patch:
        raise BadAnswer(f"{_INVALID_PREFIX}validating webhook may not return response.patch")
    if answer.patch_type is not None:
        raise BadAnswer(f"{_INVALID_PREFIX}validating webhook may not return response.patchType")


def _check_patch_type(answer: ParsedAdmissionResponse, version: str) -> None:
    kind = answer.patch_type
    if version == "v1":
        if answer.patch and kind is None:
            raise BadAnswer(
                f"{_INVALID_PREFIX}webhook returned response.patch but not response.patchType"
            )
        if kind == "":
            raise BadAnswer(f'{_INVALID_PREFIX}webhook returned invalid response.patchType of ""')
        if kind is not None and not answer.patch:
            raise BadAnswer(
                f"{_INVALID_PREFIX}webhook returned response.patchType but not response.patch"
            )
    if answer.patch and kind not in (None, JSON_PATCH):
        raise BadAnswer(f'unsupported patch type "{kind}"')


def _operations(patch: bytes) -> list[Object]:
    shown = "received undecodable patch in webhook response: "
    try:
        found = decode(patch)
    except TooDeep as error:
        raise BadAnswer(f"{shown}{error}") from error
    except orjson.JSONDecodeError as error:
        raise BadAnswer(f"{shown}{syntax_error(patch, error.pos)}") from error
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadAnswer(
            f"{shown}json: cannot unmarshal {go_type(found)} into Go value of type jsonpatch.Patch"
        )
    for operation in found:
        if not isinstance(operation, dict):
            raise BadAnswer(
                f"{shown}json: cannot unmarshal {go_type(operation)} into Go value of type "
                "jsonpatch.Operation"
            )
    if len(found) > MAX_OPERATIONS:
        raise BadAnswer(f"{shown}the allowed maximum operations are {MAX_OPERATIONS}")
    return found


class Denied(ApiError):
    """A denial with the webhook's own message and code."""

    def __init__(self, name: str, status: Object | None) -> None:
        shown = dict(status or {})
        code = shown.get("code") or 0
        self.code = _http_code(code)
        self.reason = str(shown.get("reason") or "")
        details = shown.get("details")
        wait = details.get("retryAfterSeconds") if isinstance(details, dict) else 0
        super().__init__(
            _denial(name, str(shown.get("message") or ""), self.reason),
            details=details,
            retry_after=wait or 0,
            list_meta=shown.get("metadata"),
        )
        self._told = shown

    def to_status(self) -> Object:
        status = self._told.get("status")
        made = super().to_status()
        if self.details is None:
            made.pop("details", None)
        if status not in (None, "", "Success"):
            made["status"] = status
        return made


def _http_code(code: int) -> int:
    """Return the HTTP status code: three digits, and not a success."""
    if code < 400:
        return 400
    return code if code <= 999 else 500


def _denial(name: str, message: str, reason: str) -> str:
    shown = message or reason
    if not shown:
        return f'admission webhook "{name}" denied the request without explanation'
    return f'admission webhook "{name}" denied the request: {shown}'
