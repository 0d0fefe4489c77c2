"""Bearer tokens that browsers send as a subprotocol of a WebSocket: they can set no header.

``authentication.py`` asks for them where a request has no Authorization header.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode

from instar.base import errors
from instar.server.http.messages import Request
from instar.server.http.websocket import is_websocket

_PREFIX = "base64url.bearer.authorization.k8s.io."
_URL_ALPHABET = re.compile("[A-Za-z0-9_-]+")
_HEADER = b"sec-websocket-protocol"


def websocket_token(request: Request) -> str:
    """Return the token and take it out of the offered subprotocols; empty without one. Raises
    ``Unauthorized`` for a token that is not readable, or stands without another subprotocol."""
    if _HEADER not in request.headers or not is_websocket(request):
        return ""
    offered = [part.strip() for part in ",".join(request.all_of(_HEADER)).split(",")]
    found = [part.removeprefix(_PREFIX) for part in offered if part.startswith(_PREFIX)]
    if not any(found):
        return ""
    others = [part for part in offered if not part.startswith(_PREFIX)]
    if len(found) > 1 or not others:
        raise errors.Unauthorized
    try:
        token = _decoded(found[0])
    except ValueError as error:
        raise errors.Unauthorized from error
    request.headers[_HEADER] = ",".join(others).encode()
    return token


def _decoded(text: str) -> str:
    """Base64 for URLs without padding. Raises ``ValueError`` for anything else."""
    if _URL_ALPHABET.fullmatch(text) is None:
        raise ValueError("not the alphabet for URLs, or padded")
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeError) as error:
        raise ValueError("not base64 of text") from error
