"""Ways a conversion webhook can misbehave, by name.

An answer fault changes a good answer; an HTTP fault writes its own reply. Names are what a
test's table shows.
"""

from __future__ import annotations

import socket
import struct
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

Answer = dict[str, Any]
AnswerFault = Callable[[Answer], Any]
HttpFault = Callable[[BaseHTTPRequestHandler], None]


def reply(
    handler: BaseHTTPRequestHandler,
    status: int,
    body: bytes,
    content_type: str = "application/json",
    **headers: str,
) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", content_type)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def _text(status: int, body: str) -> HttpFault:
    return lambda handler: reply(handler, status, body.encode(), "text/plain")


def _truncated(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "10000")
    handler.end_headers()
    handler.wfile.write(b'{"kind":"ConversionReview",')
    handler.close_connection = True


def _endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    handler.close_connection = True
    while True:
        handler.wfile.write(b" " * 65536)


def _stalled(handler: BaseHTTPRequestHandler) -> None:
    """Begins an answer, then waits until the caller hangs up."""
    handler.send_response(200)
    handler.send_header("Content-Length", "10000")
    handler.end_headers()
    handler.wfile.write(b'{"kind":')
    handler.rfile.read(1)


def _bomb(handler: BaseHTTPRequestHandler) -> None:
    """A few kilobytes that unpack to 32 megabytes."""
    packer = zlib.compressobj(wbits=31)
    zeros = bytes(1024 * 1024)
    body = b"".join([*(packer.compress(zeros) for _ in range(32)), packer.flush()])
    reply(handler, 200, body, Content_Encoding="gzip")


def _closed(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def _reset(handler: BaseHTTPRequestHandler) -> None:
    linger_zero = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
    handler.close_connection = True
    handler.connection.close()


def _not_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 smtp ready\r\n\r\n")
    handler.close_connection = True


def _status_object(handler: BaseHTTPRequestHandler) -> None:
    body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"told by a Status"}'
    reply(handler, 403, body)


def _redirect(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, 307, b"", Location="https://127.0.0.1:1/elsewhere")


HTTP_FAULTS: dict[str, HttpFault] = {
    "http_400": _text(400, "no"),
    "http_401": _text(401, "no"),
    "http_403": _text(403, "keep out"),
    "http_404": _text(404, "no"),
    "http_418": _text(418, "teapot"),
    "http_500": _text(500, "boom\n"),
    "http_500_json": lambda handler: reply(handler, 500, b'{"oops":true}'),
    "http_503": _text(503, "no"),
    "http_504": _text(504, "no"),
    "status_object": _status_object,
    "redirect": _redirect,
    "empty": lambda handler: reply(handler, 200, b""),
    "not_json": _text(200, "hello"),
    "half_json": lambda handler: reply(handler, 200, b'{"kind":'),
    "json_array": lambda handler: reply(handler, 200, b"[]"),
    "truncated": _truncated,
    "endless": _endless,
    "bomb": _bomb,
    "stalled": _stalled,
    "closed": _closed,
    "reset": _reset,
    "not_http": _not_http,
}


def _response(change: Callable[[Answer], None]) -> AnswerFault:
    def fault(answer: Answer) -> Answer:
        change(answer["response"])
        return answer

    return fault


def _result(**result: str) -> AnswerFault:
    return _response(lambda response: response.update(result=result, convertedObjects=[]))


def _objects(change: Callable[[list[Any]], list[Any]]) -> AnswerFault:
    return _response(
        lambda response: response.update(convertedObjects=change(response["convertedObjects"]))
    )


def _last(change: Callable[[Answer], Any]) -> AnswerFault:
    """Only the last object is wrong, so a whole batch must be looked at."""
    return _objects(lambda objects: [*objects[:-1], change(objects[-1])])


def _metadata(**values: Any) -> AnswerFault:
    return _last(lambda obj: {**obj, "metadata": {**obj["metadata"], **values}})


def _without(name: str) -> AnswerFault:
    return _last(lambda obj: {key: value for key, value in obj.items() if key != name})


ANSWER_FAULTS: dict[str, AnswerFault] = {
    "wrong_review_kind": lambda answer: {**answer, "kind": "Other"},
    "no_review_kind": lambda answer: {"response": answer["response"]},
    "no_response": lambda answer: {key: answer[key] for key in ("kind", "apiVersion")},
    "response_is_text": lambda answer: {**answer, "response": "ok"},
    "wrong_uid": _response(lambda response: response.update(uid="other")),
    "failed": _result(status="Failure", message="cannot be done"),
    "failed_silently": _result(status="Failure"),
    "no_status": _result(),
    "no_objects": _objects(lambda objects: []),
    "one_object_more": _objects(lambda objects: [*objects, objects[-1]]),
    "reversed": _objects(lambda objects: objects[::-1]),
    "object_is_null": _last(lambda obj: None),
    "object_is_text": _last(lambda obj: "text"),
    "no_object_kind": _without("kind"),
    "wrong_api_version": _last(lambda obj: {**obj, "apiVersion": "example.com/v9"}),
    "no_api_version": _without("apiVersion"),
    "wrong_object_kind": _last(lambda obj: {**obj, "kind": "Gadget"}),
    "wrong_name": _metadata(name="other"),
    "wrong_namespace": _metadata(namespace="other"),
    "wrong_object_uid": _metadata(uid="other"),
    "no_metadata": _without("metadata"),
    "metadata_is_list": _last(lambda obj: {**obj, "metadata": []}),
    "labels_are_list": _metadata(labels=["a"]),
    "label_is_number": _metadata(labels={"a": 1}),
    "label_is_invalid": _metadata(labels={"a": "x y"}),
    "annotation_is_invalid": _metadata(annotations={"a b": "x"}),
    "annotations_too_long": _metadata(annotations={"a": "x" * (256 * 1024)}),
}
