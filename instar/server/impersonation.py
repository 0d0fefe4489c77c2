"""Acting as somebody else (``kubectl --as``). Not done yet, and so refused: a client that asks for
less than its own rights must not be answered with all of them."""

from __future__ import annotations

from instar.errors import Forbidden
from instar.server.request import Request

_ASKING = (b"impersonate-user", b"impersonate-group", b"impersonate-uid")


def check_impersonation(request: Request) -> None:
    """Raises ``Forbidden`` where a request asks to be taken for somebody else's."""
    headers = request.headers
    for name in _ASKING:
        if name in headers:
            raise Forbidden(
                "this server does not impersonate: send the request without Impersonate-* headers "
                "(kubectl: without --as, --as-group and --as-uid)"
            )
