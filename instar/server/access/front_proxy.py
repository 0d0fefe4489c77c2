"""Front proxy: a proxy that has authenticated its client and names the user in request headers.

``authentication.py`` calls it for requests from a proxy, which is recognised by a client
certificate that the front-proxy CA has signed (``peer_certificates.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from urllib.parse import unquote

from instar.base.fast_dataclass import dataclass
from instar.kube.access.attributes import User
from instar.server.http.messages import Request
from instar.server.identity.client_certificates import with_authenticated


@dataclass(frozen=True, slots=True)
class Proxy(User):
    """A client with trusted user headers."""

    itself: User | None = field(default=None, hash=False)
    """The proxy's own user, if the CA of ordinary clients has signed its certificate, too."""


@dataclass(frozen=True, slots=True)
class UnacceptedCertificate(User):
    """The client certificate of neither a user nor an allowed proxy."""


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """Names of the headers with user, groups and extras, in lower case."""

    user_headers: Sequence[bytes]
    uid_headers: Sequence[bytes] = ()
    group_headers: Sequence[bytes] = ()
    extra_prefixes: Sequence[bytes] = ()

    def user_of(self, request: Request) -> User | None:
        name = self._first(request, self.user_headers)
        if not name:
            return None
        groups = tuple(
            value for header in self.group_headers for value in request.all_of(header) if value
        )
        uid = self._first(request, self.uid_headers)
        return User(name, with_authenticated(name, groups), uid, dict(self._extra(request)))

    def _first(self, request: Request, headers: Sequence[bytes]) -> str:
        values = (value for header in headers for value in request.all_of(header))
        return next(filter(None, values), "")

    def _extra(self, request: Request) -> Iterator[tuple[str, tuple[str, ...]]]:
        for prefix in self.extra_prefixes:
            yield from extra_headers(request, prefix)


def extra_headers(request: Request, prefix: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Keys and values of the extra headers with this prefix."""
    for rest, values in request.begin_with(prefix).items():
        if rest:
            yield unquote(rest.decode("latin-1"), errors="replace").lower(), tuple(values)
