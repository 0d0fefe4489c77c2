"""The one place an error becomes an answer."""

from __future__ import annotations

import logging

from instar.errors import ApiError, Internal, TooManyRequests
from instar.protobuf.envelope import encode_object
from instar.server.negotiate import PROTOBUF, error_form
from instar.server.request import Request
from instar.server.responses import Header, Response, text_response, typed_response

log = logging.getLogger(__name__)
_PROTOBUF_TYPE: Header = (b"content-type", PROTOBUF.encode())


def problem(error: ApiError, request: Request) -> Response:
    headers: list[Header] = []
    if error.retry_after:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if isinstance(error, TooManyRequests) and not error.retry_after:
        headers.append((b"retry-after", b"1"))
    form = error_form(request)
    if form.media == PROTOBUF:
        return Response(error.code, (encode_object(error.to_status()),), [_PROTOBUF_TYPE, *headers])
    response = typed_response(error.code, error.to_status(), form)
    response.headers += headers
    return response


def page_not_found() -> Response:
    """What upstream answers for a path nobody serves: plain text, no Status."""
    return text_response(404, "404 page not found\n")


def unexpected(error: Exception, request: Request) -> Response:
    """A bug of ours: the log gets the traceback, the client gets a Status."""
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(Internal(f"{type(error).__name__}: see the server's log"), request)
