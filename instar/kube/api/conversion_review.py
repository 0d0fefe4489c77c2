"""ConversionReview v1 and v1beta1: encoding and parsing of requests and responses.

The server (``wire/conversion/webhook.py``) writes requests and reads responses; the SDK does the
opposite. Whether a response is acceptable is decided by ``wire/conversion/contract.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from instar.base.fast_dataclass import dataclass
from instar.kube.api.encoding.go_json_errors import go_type
from instar.kube.api.encoding.json_text import TooDeep, decode

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
        uid=_member(request, "uid", str, "", "request."),
        desired_api_version=_member(request, "desiredAPIVersion", str, "", "request."),
        objects=_member(request, "objects", list, [], "request."),
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
    response = _member(review, "response", dict, None)
    if response is None:
        return ConversionResponse(api_version=api_version, kind=kind, present=False)
    result = _member(response, "result", dict, {}, "response.")
    return ConversionResponse(
        api_version=api_version,
        kind=kind,
        present=True,
        uid=_member(response, "uid", str, "", "response."),
        status=_member(result, "status", str, "", "response.result."),
        message=_member(result, "message", str, "", "response.result."),
        objects=_member(response, "convertedObjects", list, [], "response."),
    )


def _encode_response(version: str, uid: str, objects: list[Any], result: dict[str, str]) -> bytes:
    return orjson.dumps(
        {
            "kind": KIND,
            "apiVersion": f"{GROUP}/{version}",
            "response": {"uid": uid, "convertedObjects": objects, "result": result},
        }
    )


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        review = decode(body)
    except TooDeep as error:
        raise InvalidConversionReview(
            f"couldn't get version/kind; json parse error: {error}"
        ) from error
    except orjson.JSONDecodeError as error:
        problem = _go_syntax_error(body, error.pos)
        raise InvalidConversionReview(
            f"couldn't get version/kind; json parse error: {problem}"
        ) from error
    if not isinstance(review, dict):
        raise InvalidConversionReview(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal "
            f'{go_type(review)} into Go value of type struct {{ APIVersion string "json:'
            f'\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
        )
    return review


def _go_syntax_error(body: bytes, position: int) -> str:
    rest = body.decode("utf-8", "replace")[position:]
    if not rest.strip():
        return "unexpected end of JSON input"
    return f"invalid character '{rest[0]}' looking for beginning of value"


def _member(holder: dict[str, Any], name: str, wanted: type, default: Any, path: str = "") -> Any:
    """Return a typed member; absent and null give the default, any other type is Go's decode
    error."""
    value = holder.get(name)
    if value is None:
        return default
    if not isinstance(value, wanted):
        raise InvalidConversionReview(
            f"json: cannot unmarshal {go_type(value)} into Go struct field "
            f"{KIND}.{path}{name} of type {_GO_NAMES[wanted]}"
        )
    return value


_GO_NAMES: dict[type, str] = {str: "string", dict: "struct", list: "[]runtime.RawExtension"}


def _text(value: str) -> str:
    return orjson.dumps(value).decode()
