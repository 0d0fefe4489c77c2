"""The one place an error becomes an answer."""

from __future__ import annotations

import logging

from instar.api.jsontext import encode
from instar.errors import ApiError, Internal, TooManyRequests
from instar.server.negotiate import YAML, error_media
from instar.server.request import Request
from instar.server.responses import JSON_TYPE, YAML_TYPE, Response, text_response, to_yaml

log = logging.getLogger(__name__)


def problem(error: ApiError, request: Request) -> Response:
    body = encode(error.to_status())
    headers = []
    if error.retry_after:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if isinstance(error, TooManyRequests) and not error.retry_after:
        headers.append((b"retry-after", b"1"))
    if error_media(request.header(b"accept")) == YAML:
        return Response(error.code, (to_yaml(body),), [YAML_TYPE, *headers])
    return Response(error.code, (body + b"\n",), [JSON_TYPE, *headers])


def page_not_found() -> Response:
    """What upstream answers for a path nobody serves: plain text, no Status."""
    return text_response(404, "404 page not found\n")


def unexpected(error: Exception, request: Request) -> Response:
    """A bug of ours: the log gets the traceback, the client gets a Status."""
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(Internal(f"{type(error).__name__}: see the server's log"), request)
