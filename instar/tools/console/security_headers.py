"""Security headers of the console's responses: CSP, no framing, no MIME sniffing.

Used by ``pages.py``, ``api.py`` and ``listening.py``.
"""

from __future__ import annotations

from typing import Any

from instar.kube.api.encoding.json_text import encode
from instar.server.http.messages import JSON_TYPE, Header, Response

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_ALWAYS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_NO_STORE: Header = (b"cache-control", b"no-store")


def add_security_headers(response: Response, policy: str = POLICY) -> Response:
    """Return the response with security headers."""
    names = {name for name, _ in response.headers}
    added = [header for header in _ALWAYS if header[0] not in names]
    if b"content-security-policy" not in names:
        added.append((b"content-security-policy", policy.encode()))
    if b"cache-control" not in names:
        added.append(_NO_STORE)
    response.headers += added
    response.bare = True
    return response


def inert(response: Response) -> Response:
    """Make an API response safe to display: an object, or a pod's page through the API proxy, may
    contain scripts that would run in the console's origin.
    """
    response.headers += [
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
        (b"x-content-type-options", b"nosniff"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]
    return response


def json_answer(status: int, document: Any, cookies: list[str] | None = None) -> Response:
    headers: list[Header] = [JSON_TYPE]
    headers += [(b"set-cookie", line.encode("latin-1")) for line in cookies or ()]
    return Response(status, (encode(document) + b"\n",), headers)


def redirect(status: int, place: str, cookies: list[str] | None = None) -> Response:
    headers: list[Header] = [(b"location", place.encode("ascii", "replace"))]
    headers += [(b"set-cookie", line.encode("latin-1")) for line in cookies or ()]
    return Response(status, (), headers)
