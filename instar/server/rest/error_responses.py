"""Error responses: the only place where an error becomes an HTTP response.

``server/app.py`` calls it for every failed request; the errors are in ``base/errors.py``.
"""

from __future__ import annotations

import logging

from instar.base import offload
from instar.base.errors import AccessDenied, ApiError, Internal, TooManyRequests
from instar.server.http.messages import Header, Request, Response, text_response
from instar.server.rest.negotiate import error_form
from instar.server.rest.responses import typed_response

log = logging.getLogger(__name__)


def problem(error: ApiError, request: Request) -> Response:
    """The response to an error: its Status in the accepted format."""
    headers: list[Header] = []
    if error.retry_after:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if isinstance(error, TooManyRequests) and not error.retry_after:
        headers.append((b"retry-after", b"1"))
    if isinstance(error, AccessDenied):
        headers.append((b"x-content-type-options", b"nosniff"))
    form = error_form(request)
    response = typed_response(error.code, error.to_status(), form)
    response.headers += headers
    return response


async def render_error(error: ApiError, request: Request) -> Response:
    """The same, in a thread where the error has very many causes."""
    causes = (error.details or {}).get("causes") or ()
    size = len(error.message) + 100 * len(causes)
    try:
        return await offload.run(size, lambda: problem(error, request))
    except TooManyRequests as busy:
        return problem(busy, request)


def too_many_requests(retry_after: int) -> Response:
    """kube-apiserver's response to too many requests in flight: plain text, no Status."""
    response = text_response(429, "Too many requests, please try again later.\n")
    seconds = str(retry_after).encode()
    response.headers += [(b"x-content-type-options", b"nosniff"), (b"retry-after", seconds)]
    return response


def page_not_found() -> Response:
    """kube-apiserver's response to a path that is not served: plain text, no Status."""
    return text_response(404, "404 page not found\n")


def unexpected(error: Exception, request: Request) -> Response:
    """A defect of instar: log the traceback, and respond with a Status."""
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(Internal(f"{type(error).__name__}: see the server's log"), request)
