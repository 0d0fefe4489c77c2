"""Reads the JSON body of a console request.

Used by ``api.py`` and ``pages.py``.
"""

from __future__ import annotations

import orjson

from instar.base.errors import BadRequest, UnsupportedMediaType
from instar.base.json_values import Object
from instar.server.http.messages import Request


def body_of(request: Request) -> Object:
    """Return the JSON object. Raises ``ApiError``. A body of another media type is rejected,
    against CSRF: a form on another site can send a request, but not ``application/json``."""
    media = request.header(b"content-type").partition(";")[0].strip().lower()
    if media != "application/json":
        raise UnsupportedMediaType("the console takes application/json")
    try:
        document = orjson.loads(request.content() or b"{}")
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest("the body is not a JSON object")
    return document
