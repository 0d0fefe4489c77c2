"""Authenticates console requests: by session cookie, client certificate or Authorization header.

Called by ``pages.py``. A session cookie is accepted only on requests that the console's own page
sends (``origin_checks.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from instar.base.errors import RequestTooLarge, Unauthorized
from instar.base.fast_dataclass import dataclass
from instar.kube.access.attributes import User
from instar.server.http.messages import Request
from instar.tools.console import cookies
from instar.tools.console.origin_checks import check_origin, may_show_cookie
from instar.tools.console.sessions import Ended, NoSession, Session, Sessions

Why = Literal["NotSignedIn", "SessionExpired", "CredentialRefused"]
"""Reason why a request is not authenticated."""
_TEXTS: dict[Why, str] = {
    "NotSignedIn": "not signed in",
    "SessionExpired": "the session has ended; sign in again",
    "CredentialRefused": "the server does not take this credential",
}


class NotSignedIn(Unauthorized):
    """The request has no valid session or credential."""

    def __init__(self, why: Why) -> None:
        super().__init__(_TEXTS[why])
        self.why = why
        self.details = {"causes": [{"reason": why, "message": _TEXTS[why]}]}


@dataclass(frozen=True, slots=True)
class Visitor:
    """A signed-in user, with the credentials for the API requests."""

    how: str
    """``token``, ``oidc``, ``certificate``, ``header`` or ``kubeconfig``."""
    authorization: bytes | None = None
    """Authorization header of the visitor's API requests."""
    peer: User | None = None
    """User of the connection's client certificate."""
    expires: float | None = None


class Visitors:
    """Authenticates requests and manages session cookies."""

    def __init__(
        self, sessions: Sessions, clock: Callable[[], float], *, scheme: str, cookie: str
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._scheme = scheme
        self._cookie = cookie

    def check(self, request: Request) -> None:
        """Raise ``Forbidden`` for a request of another site."""
        check_origin(request, self._scheme)

    def of(self, request: Request, peer: User | None) -> Visitor:
        """Return the visitor. Raises ``NotSignedIn``, or ``Forbidden`` for a request of another
        site."""
        shown = request.headers.get(b"authorization")
        if shown is not None:
            return Visitor("header", shown, peer)
        if not may_show_cookie(request):
            raise NotSignedIn("NotSignedIn")
        self.check(request)
        sealed = cookies.join_cookie(cookies.read_cookies(request.all_of(b"cookie")), self._cookie)
        if sealed:
            return self._opened(sealed)
        if peer is not None:
            return Visitor("certificate", peer=peer)
        raise NotSignedIn("NotSignedIn")

    def _opened(self, sealed: str) -> Visitor:
        try:
            session = self._sessions.open(sealed, self._clock())
        except (NoSession, Ended):
            raise NotSignedIn("SessionExpired") from None
        shown = f"Bearer {session.token}".encode() if session.token else None
        return Visitor(session.how, shown, expires=session.expires)

    def begin(self, session: Session) -> list[str]:
        """Return the Set-Cookie lines of a new session."""
        sealed = self._sessions.seal(session)
        if not cookies.fits(sealed):
            raise RequestTooLarge("a token of this size cannot be kept in a session")
        return self._lines(sealed, max(int(session.expires - self._clock()), 1))

    def end(self) -> list[str]:
        return self._lines("", 0)

    def _lines(self, value: str, seconds: int) -> list[str]:
        secure = self._scheme == "https"
        return cookies.set_cookies(self._cookie, value, seconds, secure=secure, same_site="Strict")
