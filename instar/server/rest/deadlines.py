"""Deadlines of requests: kube-apiserver's limits and ``?timeout=``.

``server/app.py`` sets the limit of each request; the connection (``http/http1.py``) enforces it.
"""

from __future__ import annotations

import re

from instar.base.errors import BadRequest, Timeout
from instar.server.http.messages import Request

_WRITE_SECONDS = 34.0
"""Limit for a write of one object, so that it ends before the client gives up."""

_SINGLE_WRITES = ("create", "update", "patch", "delete")
_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = re.compile(r"([0-9]*\.?[0-9]*)([^0-9.]*)")


def limit(request: Request, verb: str, longest: float) -> None:
    """Set how long the response may take; a watch has no limit."""
    if verb == "watch":
        request.patience = 0.0
        return
    asked = request.one("timeout") if request.query else ""
    seconds = duration(asked) if asked else 0.0
    allowed = min(seconds, longest) if seconds > 0 else longest
    request.writes = verb in _SINGLE_WRITES
    request.patience = min(allowed, _WRITE_SECONDS) if request.writes else allowed


def check_timeout(request: Request) -> None:
    """Refuse an invalid timeout before anything else, as kube-apiserver does."""
    asked = request.one("timeout")
    if asked:
        duration(asked)


def too_late(request: Request) -> Timeout:
    """Return the error of a request that exceeded its deadline."""
    if request.writes:
        return Timeout(
            "request did not complete within requested timeout - context deadline exceeded"
        )
    return Timeout("request did not complete within the allotted timeout")


def duration(text: str) -> float:
    """Seconds of a Go duration such as ``1m30s``. Raises ``BadRequest`` with Go's message."""
    sign = -1.0 if text.startswith("-") else 1.0
    rest = text[1:] if text[:1] in "+-" else text
    if rest == "0":
        return 0.0
    if not rest:
        raise _refused(f'invalid duration "{text}"')
    total, at = 0.0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        assert part is not None
        number, unit = part.groups()
        if not number.strip("."):
            raise _refused(f'invalid duration "{text}"')
        if not unit:
            raise _refused(f'missing unit in duration "{text}"')
        if unit not in _UNITS:
            raise _refused(f'unknown unit "{unit}" in duration "{text}"')
        total += float(number) * _UNITS[unit]
        at = part.end()
    return sign * total


def _refused(why: str) -> BadRequest:
    return BadRequest(f"invalid timeout specified in the request URL - time: {why}")
