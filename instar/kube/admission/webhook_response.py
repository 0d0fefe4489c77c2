"""What a webhook's answer means: whether it may be used, what it allows, changes and says.

Pure: an answer in, a ``WebhookVerdict`` or upstream's complaint out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.kube.api.admission_review import GROUP, JSON_PATCH, KIND, AdmissionAnswer
from instar.kube.api.encoding.go_json_errors import go_type, syntax_error
from instar.kube.api.encoding.json_text import TooDeep, decode
from instar.kube.patches.json_patch import MAX_OPERATIONS

_INVALID = "received invalid webhook response: "


class BadAnswer(Exception):
    """The answer cannot be used; the text follows ``failed calling webhook "<name>": ``."""


class WebhookVerdict(NamedTuple):
    allowed: bool
    patch: Sequence[Object] = ()
    """Operations of a JSON patch."""
    status: Object | None = None
    """Why not, in the webhook's words."""
    annotations: Mapping[str, str] = {}
    warnings: Sequence[str] = ()


def verdict_of(
    answer: AdmissionAnswer, version: str, uid: str, *, mutating: bool
) -> WebhookVerdict:
    """``version`` and ``uid`` are the question's. Raises ``BadAnswer``."""
    if not answer.present:
        raise BadAnswer(f"{_INVALID}webhook response was absent")
    if version == "v1":
        _check_type(answer, uid)
    if not mutating:
        _check_unpatched(answer, version)
    patch: Sequence[Object] = ()
    if mutating:
        _check_patch_type(answer, version)
        patch = _operations(answer.patch) if answer.patch and answer.allowed else ()
    return WebhookVerdict(answer.allowed, patch, answer.status, answer.annotations, answer.warnings)


def _check_type(answer: AdmissionAnswer, uid: str) -> None:
    if answer.uid != uid:
        raise BadAnswer(f'{_INVALID}expected response.uid="{uid}", got "{answer.uid}"')
    if (answer.api_version, answer.kind) != (f"{GROUP}/v1", KIND):
        group, _, version = answer.api_version.rpartition("/")
        raise BadAnswer(
            f"{_INVALID}expected webhook response of {GROUP}/v1, Kind={KIND}, got "
            f"{group}/{version}, Kind={answer.kind}"
        )


def _check_unpatched(answer: AdmissionAnswer, version: str) -> None:
    if version != "v1":
        return
    if answer.patch:
        raise BadAnswer(f"{_INVALID}validating webhook may not return response.patch")
    if answer.patch_type is not None:
        raise BadAnswer(f"{_INVALID}validating webhook may not return response.patchType")


def _check_patch_type(answer: AdmissionAnswer, version: str) -> None:
    kind = answer.patch_type
    if version == "v1":
        if answer.patch and kind is None:
            raise BadAnswer(f"{_INVALID}webhook returned response.patch but not response.patchType")
        if kind == "":
            raise BadAnswer(f'{_INVALID}webhook returned invalid response.patchType of ""')
        if kind is not None and not answer.patch:
            raise BadAnswer(f"{_INVALID}webhook returned response.patchType but not response.patch")
    if answer.patch and kind not in (None, JSON_PATCH):
        raise BadAnswer(f'unsupported patch type "{kind}"')


def _operations(patch: bytes) -> list[Object]:
    told = "received undecodable patch in webhook response: "
    try:
        found = decode(patch)
    except TooDeep as error:
        raise BadAnswer(f"{told}{error}") from error
    except orjson.JSONDecodeError as error:
        raise BadAnswer(f"{told}{syntax_error(patch, error.pos)}") from error
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadAnswer(
            f"{told}json: cannot unmarshal {go_type(found)} into Go value of type jsonpatch.Patch"
        )
    for operation in found:
        if not isinstance(operation, dict):
            raise BadAnswer(
                f"{told}json: cannot unmarshal {go_type(operation)} into Go value of type "
                "jsonpatch.Operation"
            )
    if len(found) > MAX_OPERATIONS:
        raise BadAnswer(f"{told}the allowed maximum operations are {MAX_OPERATIONS}")
    return found


class Denied(ApiError):
    """A refusal in a webhook's own words and with its own code."""

    def __init__(self, name: str, status: Object | None) -> None:
        told = dict(status or {})
        code = told.get("code") or 0
        self.code = _http_code(code)
        self.reason = str(told.get("reason") or "")
        details = told.get("details")
        wait = details.get("retryAfterSeconds") if isinstance(details, dict) else 0
        super().__init__(
            _denial(name, str(told.get("message") or ""), self.reason),
            details=details,
            retry_after=wait or 0,
            list_meta=told.get("metadata"),
        )
        self._told = told

    def to_status(self) -> Object:
        status = self._told.get("status")
        made = super().to_status()
        if self.details is None:
            made.pop("details", None)
        if status not in (None, "", "Success"):
            made["status"] = status
        return made


def _http_code(code: int) -> int:
    """What stands in the status line: three digits, and no success."""
    if code < 400:
        return 400
    return code if code <= 999 else 500


def _denial(name: str, message: str, reason: str) -> str:
    told = message or reason
    if not told:
        return f'admission webhook "{name}" denied the request without explanation'
    return f'admission webhook "{name}" denied the request: {told}'
