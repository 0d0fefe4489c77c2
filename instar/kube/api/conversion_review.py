"""ConversionReview v1 and v1beta1: encoding and parsing of requests and responses.

The server (``wire/conversion/webhook.py``) writes requests and reads responses; the SDK does the
opposite. Whether a response is acceptable is decided by ``wire/conversion/contract.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.encoding.go_json_errors import go_type
from instar.kube.api.encoding.review_text import SCHEME, MalformedReview, read_review

GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
SUCCESS = "Success"
FAILURE = "Failure"
KNOWN_VERSIONS = ("v1", "v1beta1")

_NO_ANSWER_YET = (
    # upstream sends this empty response, too
    b'},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}\n'
)


class InvalidConversionReview(ValueError):
    """The body is not a ConversionReview; the text is the message of Go's decoder for the same
    bytes."""


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    version: str
    """``v1`` or ``v1beta1``."""
    uid: str
    desired_api_version: str
    objects: Sequence[Any]


@dataclass(frozen=True, slots=True)
class ConversionResponse:
    """A parsed response; ``present`` is false when the review has no ``response``."""

    api_version: str
    kind: str
    present: bool
    uid: str = ""
    status: str = ""
    message: str = ""
    objects: Sequence[Any] = ()


def preferred_version(listed: Iterable[str]) -> str | None:
    """Return the first listed review version that the server supports; the CRD's order decides."""
    return next((version for version in listed if version in KNOWN_VERSIONS), None)


def encode_request(version: str, uid: str, api_version: str, objects: Iterable[bytes]) -> bytes:
    """Encode a request from encoded objects, which the caller has measured already."""
    head = (
        f'{{"kind":"{KIND}","apiVersion":"{GROUP}/{version}","request":{{'
        f'"uid":{_text(uid)},"desiredAPIVersion":{_text(api_version)},"objects":['
    )
    return b"".join((head.encode(), b",".join(objects), b"]", _NO_ANSWER_YET))


def parse_request(body: bytes) -> ConversionRequest:
    """Parse a request. Raises ``InvalidConversionReview`` with a message for the caller of the
    webhook."""
    review = _parse_object(body)
    group, _, version = _member(review, "apiVersion", str, "").rpartition("/")
    kind = _member(review, "kind", str, "")
    if kind != KIND or group != GROUP or version not in KNOWN_VERSIONS:
        spoken = " or ".join(f"{GROUP}/{known}" for known in KNOWN_VERSIONS)
        received = f"{review.get('apiVersion', '')}, Kind={kind}"
        raise InvalidConversionReview(f"expected a {KIND} of {spoken}, got {received}")
    request = _member(review, "request", dict, None)
    if request is None:
        raise InvalidConversionReview("no request provided")
    return ConversionRequest(
        version=version,
        uid=_member(request, "uid", str, "", _IN_REQUEST),
        desired_api_version=_member(request, "desiredAPIVersion", str, "", _IN_REQUEST),
        objects=_member(request, "objects", list, [], _IN_REQUEST),
    )


def encode_success(version: str, uid: str, objects: Sequence[Any]) -> bytes:
    return _encode_response(version, uid, list(objects), {"status": SUCCESS})


def encode_failure(version: str, uid: str, message: str) -> bytes:
    """Encode a failure; ``message`` is the only part that a server passes on to its client."""
    return _encode_response(version, uid, [], {"status": FAILURE, "message": message})


def parse_response(body: bytes) -> ConversionResponse:
    """Parse a response. Raises ``InvalidConversionReview`` where upstream's decoder fails."""
    review = _parse_object(body)
    api_version = _member(review, "apiVersion", str, "")
    kind = _member(review, "kind", str, "")
    _check_known(api_version, kind)
    response = _member(review, "response", dict, None)
    if response is None:
        return ConversionResponse(api_version=api_version, kind=kind, present=False)
    result = _member(response, "result", dict, {}, _IN_RESPONSE)
    return ConversionResponse(
        api_version=api_version,
        kind=kind,
        present=True,
        uid=_member(response, "uid", str, "", _IN_RESPONSE),
        status=_member(result, "status", str, "", _IN_RESULT),
        message=_member(result, "message", str, "", _IN_RESULT),
        objects=_member(response, "convertedObjects", list, [], _IN_RESPONSE),
    )


def _encode_response(version: str, uid: str, objects: list[Any], result: dict[str, str]) -> bytes:
    return orjson.dumps(
        {
            "kind": KIND,
            "apiVersion": f"{GROUP}/{version}",
            "response": {"uid": uid, "convertedObjects": objects, "result": result},
        }
    )


def _parse_object(body: bytes) -> Object:
    try:
        return read_review(body)
    except MalformedReview as error:
        raise InvalidConversionReview(str(error)) from error


def _check_known(api_version: str, kind: str) -> None:
    """Refuse a review of a type that upstream's scheme lacks; the contract refuses an empty one."""
    group, _, version = api_version.rpartition("/")
    if kind and (kind != KIND or group != GROUP or version not in KNOWN_VERSIONS):
        raise InvalidConversionReview(
            f'no kind "{kind}" is registered for version "{api_version}" in scheme "{SCHEME}"'
        )


def _member(holder: Object, name: str, wanted: type, default: Any, place: str = KIND) -> Any:
    """Return a typed member; absent and null give the default, any other type is Go's decode
    error."""
    value = holder.get(name)
    if value is None:
        return default
    if not isinstance(value, wanted):
        type_name = _STRUCTS.get(name) or _GO_NAMES[wanted]
        raise InvalidConversionReview(
            f"json: cannot unmarshal {go_type(value)} into Go struct field {place}.{name} of type "
            f"{type_name}"
        )
    return value


_GO_NAMES: dict[type, str] = {str: "string", list: "[]runtime.RawExtension"}
_STRUCTS = {
    "request": "v1.ConversionRequest",
    "response": "v1.ConversionResponse",
    "result": "v1.Status",
    "uid": "types.UID",
}
_IN_REQUEST = "ConversionRequest.request"
_IN_RESPONSE = "ConversionResponse.response"
_IN_RESULT = "Status.response.result"


def _text(value: str) -> str:
    return orjson.dumps(value).decode()
