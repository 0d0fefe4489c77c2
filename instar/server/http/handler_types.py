"""Types between a connection and the code that answers its requests.

``http1.py`` calls a ``Handler`` for each request; the application (``server/app.py``) is one, and
the console (``tools/console``) puts a ``Front`` before it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from instar.kube.access.attributes import User
from instar.server.http.messages import Request, Response

Handler = Callable[[Request, User | None], Coroutine[Any, Any, Response]]
"""The user is the one of the connection's client certificate, None without a certificate."""

Secret = Callable[[], bytes]
"""The same bytes in every process that serves this API with the same keys, and in no other."""

Front = Callable[[Handler, Secret], Handler]
"""Makes a handler that answers some requests itself and passes the others on."""


class TlsPeer(Protocol):
    """The part of a connection's TLS state that concerns the client's certificate."""

    def getpeercert(self, binary_form: bool = False) -> object: ...


PeerOf = Callable[[TlsPeer], User | None]
"""The user a client certificate names."""


def no_peer(_: TlsPeer) -> None:
    """Return no peer: for a server that requests no client certificates."""
    return
