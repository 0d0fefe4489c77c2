"""AdmissionReview v1 and v1beta1: encoding and parsing of requests and responses.

The server (``server/registry/admission/webhooks/call.py``) writes requests and reads responses; the
SDK (``tools/sdk/admission_reviews.py``) does the opposite. Whether a response is acceptable is
decided by ``kube/admission/webhook_response.py``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.encoding.go_json_errors import go_type
from instar.kube.api.encoding.json_text import encode
from instar.kube.api.encoding.review_text import SCHEME, MalformedReview, read_review

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
KNOWN_VERSIONS = ("v1", "v1beta1")
JSON_PATCH = "JSONPatch"


class InvalidAdmissionReview(ValueError):
    """The body is not an AdmissionReview; the text is the message of Go's decoder for the same
    bytes."""


@dataclass(frozen=True, slots=True)
class ParsedAdmissionResponse:
    """A parsed response; ``present`` is false when the review has no ``response``."""

    api_version: str
    kind: str
    present: bool
    uid: str = ""
    allowed: bool = False
    status: Object | None = None
    patch: bytes | None = None
    patch_type: str | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class ParsedAdmissionRequest(NamedTuple):
    """A parsed request, as a webhook receives it."""

    version: str
    request: Object

    @property
    def uid(self) -> str:
        return str(self.request.get("uid", ""))


def preferred_version(listed: Iterable[str]) -> str | None:
    """Return the first listed review version that the server supports; the configuration's order
    decides."""
    return next((version for version in listed if version in KNOWN_VERSIONS), None)


def encode_admission_request(
    version: str, uid: str, document: Object, obj: bytes | None, old: bytes | None
) -> bytes:
    """Encode the review. ``document`` is the request without ``uid`` and the objects, which are
    already encoded, because several webhooks may get the same ones."""
    # The last members of the document follow the objects, as upstream writes them.
    tail = {name: document[name] for name in ("dryRun", "options")}
    head = {name: value for name, value in document.items() if name not in tail}
    return b"".join(
        (
            f'{{"kind":"{KIND}","apiVersion":"{GROUP}/{version}","request":'.encode(),
            encode({"uid": uid, **head})[:-1],
            b',"object":',
            obj or b"null",
            b',"oldObject":',
            old or b"null",
            b",",
            encode(tail)[1:],
            b"}\n",
        )
    )


def parse_admission_request(body: bytes) -> ParsedAdmissionRequest:
    """Parse a request. Raises ``InvalidAdmissionReview`` with a message for the caller of the
    webhook."""
    review = _parse_object(body)
    group, _, version = str(review.get("apiVersion", "")).rpartition("/")
    if review.get("kind") != KIND or group != GROUP or version not in KNOWN_VERSIONS:
        spoken = " or ".join(f"{GROUP}/{known}" for known in KNOWN_VERSIONS)
        received = f"{review.get('apiVersion', '')}, Kind={review.get('kind', '')}"
        raise InvalidAdmissionReview(f"expected an {KIND} of {spoken}, got {received}")
    request = review.get("request")
    if not isinstance(request, dict):
        raise InvalidAdmissionReview("no request provided")
    return ParsedAdmissionRequest(version, request)


def encode_answer(
    question: ParsedAdmissionRequest,
    *,
    allowed: bool,
    message: str = "",
    code: int = 0,
    reason: str = "",
    patch: Sequence[Object] = (),
    warnings: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    response: Object = {"uid": question.uid, "allowed": allowed}
    status = {"message": message, "code": code, "reason": reason}
    filled = {name: value for name, value in status.items() if value}
    if filled:
        response["status"] = filled
    if patch:
        response["patchType"] = JSON_PATCH
        response["patch"] = base64.b64encode(orjson.dumps(patch)).decode()
    if warnings:
        response["warnings"] = list(warnings)
    if annotations:
        response["auditAnnotations"] = dict(annotations)
    review = {"kind": KIND, "apiVersion": f"{GROUP}/{question.version}", "response": response}
    return orjson.dumps(review)


def parse_answer(body: bytes, wanted: str) -> ParsedAdmissionResponse:
    """Parse a response. Raises ``InvalidAdmissionReview`` where upstream's decoder fails;
    ``wanted`` is the review version of the request."""
    review = _parse_object(body)
    api_version = _text(review, "apiVersion")
    kind = _text(review, "kind")
    _check_known(api_version, kind, wanted)
    response = _member(review, "response", dict, "v1.AdmissionResponse", "AdmissionReview")
    if response is None:
        return ParsedAdmissionResponse(api_version, kind, present=False)
    place = "AdmissionResponse.response"
    return ParsedAdmissionResponse(
        api_version,
        kind,
        present=True,
        uid=_member(response, "uid", str, "types.UID", place) or "",
        allowed=_member(response, "allowed", bool, "bool", place) or False,
        status=_status(_member(response, "status", dict, "v1.Status", place)),
        patch=_bytes(_member(response, "patch", str, "[]uint8", place)),
        patch_type=_member(response, "patchType", str, "v1.PatchType", place),
        annotations=_texts_by_name(response, place),
        warnings=_texts(response, place),
    )


def _check_known(api_version: str, kind: str, wanted: str) -> None:
    """Check the review's type; an empty type counts as the requested one."""
    if not api_version and not kind:
        return
    group, _, version = api_version.rpartition("/")
    if kind != KIND or group != GROUP or version not in KNOWN_VERSIONS:
        text = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{SCHEME}"'
        raise InvalidAdmissionReview(text)
    if version != wanted:
        theirs, ours = f"{version}.{KIND}", f"{wanted}.{KIND}"
        raise InvalidAdmissionReview(f"converting ({theirs}) to ({ours}): unknown conversion")


def _parse_object(body: bytes) -> Object:
    try:
        return read_review(body)
    except MalformedReview as error:
        raise InvalidAdmissionReview(str(error)) from error


def _member(holder: Object, name: str, wanted: type, go_name: str, place: str) -> Any:
    """Return a typed member; absent and null are None, any other type is Go's decode error."""
    value = holder.get(name)
    if value is not None and type(value) is not wanted:
        raise InvalidAdmissionReview(
            f"json: cannot unmarshal {go_type(value)} into Go struct field {place}.{name} of type "
            f"{go_name}"
        )
    return value


def _text(holder: Object, name: str) -> str:
    return str(_member(holder, name, str, "string", KIND) or "")


def _status(status: Object | None) -> Object | None:
    if status is None:
        return None
    place = "Status.response.status"
    for name in ("message", "reason", "status"):
        _member(status, name, str, "string", place)
    _member(status, "code", int, "int32", place)
    details = _member(status, "details", dict, "v1.StatusDetails", place)
    if details is not None:
        _member(details, "retryAfterSeconds", int, "int32", f"{place}.details")
    _member(status, "metadata", dict, "v1.ListMeta", place)
    return status


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        at = next((at for at, char in enumerate(text) if not _is_base64(char)), len(text))
        raise InvalidAdmissionReview(f"illegal base64 data at input byte {at}") from error


def _is_base64(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "+/")


def _texts_by_name(response: Object, place: str) -> Mapping[str, str]:
    found: Object = _member(response, "auditAnnotations", dict, "map[string]string", place) or {}
    for value in found.values():
        if not isinstance(value, str):
            raise InvalidAdmissionReview(
                f"json: cannot unmarshal {go_type(value)} into Go struct field "
                f"{place}.auditAnnotations of type string"
            )
    return found


def _texts(response: Object, place: str) -> Sequence[str]:
    found: list[Any] = _member(response, "warnings", list, "[]string", place) or []
    for value in found:
        if not isinstance(value, str):
            raise InvalidAdmissionReview(
                f"json: cannot unmarshal {go_type(value)} into Go struct field "
                f"{place}.warnings of type string"
            )
    return found
