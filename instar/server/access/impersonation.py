"""Impersonation (``kubectl --as``): the user named by headers, if the client may act as that user.

``server/app.py`` calls it after authentication. As in kube-apiserver, the mode of impersonation
that allowed a client last is tried first the next time.
"""

from __future__ import annotations

from urllib.parse import unquote

from instar.base.errors import ApiError, BadRequest
from instar.base.field_errors import go_quote
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import Authorizer, AuthzDecision, AuthzVerdict, refused
from instar.kube.access.impersonation import Check, Mode, impersonated_user, modes
from instar.server.http.messages import Request

_PREFIX = b"impersonate-"
_USER, _UID, _GROUP = b"impersonate-user", b"impersonate-uid", b"impersonate-group"
_EXTRA = b"impersonate-extra-"
_MAX_REMEMBERED_USERS = 10_000
"""Users whose last mode is remembered; at this number all are forgotten."""


class Impersonation:
    """Checks impersonation headers with the authorizer."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._last: dict[str, str] = {}
        """By user: the mode that last allowed an impersonation."""

    async def user_of(self, request: Request, asked: Attributes) -> tuple[User, str]:
        """Return the impersonated user, and the constraint that allows it. Raises ``ApiError``."""
        wanted = _requested_user(request)
        if not wanted.name:
            raise BadRequest(f"requested {_go_struct(wanted)} without impersonating a user name")
        fitting = list(modes(asked, wanted))
        last = self._last.get(asked.user.name)
        fitting.sort(key=lambda mode: mode.name != last)
        first: ApiError | None = None
        for mode in fitting:
            failure = await self._failure(mode)
            if failure is None:
                self._remember(asked.user.name, mode.name)
                return impersonated_user(wanted, mode), mode.constraint
            first = first or failure
        assert first is not None, "the legacy mode fits always"
        raise first

    def _remember(self, name: str, mode: str) -> None:
        if len(self._last) >= _MAX_REMEMBERED_USERS:
            self._last.clear()
        self._last[name] = mode

    async def _failure(self, mode: Mode) -> ApiError | None:
        for check in mode.checks:
            failure = await self._refusal(check)
            if failure is not None:
                return failure
        return None

    async def _refusal(self, check: Check) -> ApiError | None:
        if check.refused:
            return refused(check.asked, AuthzDecision(AuthzVerdict.DENY, check.refused))
        decision = await self._authorizer.ask(check.asked)
        if decision.allowed:
            return None
        if not check.instead:
            return refused(check.asked, decision)
        for each in check.instead:
            decision = await self._authorizer.ask(each)
            if not decision.allowed:
                return refused(each, decision)
        return None


def is_asked_for(request: Request) -> bool:
    """Whether a request has impersonation headers with a value."""
    if _PREFIX not in b"".join(request.headers):  # one search in all names: this is the hot path
        return False
    return any(name.startswith(_PREFIX) and any(request.all_of(name)) for name in request.headers)


def _requested_user(request: Request) -> User:
    extra = {
        unquote(rest.decode("latin-1"), errors="replace").lower(): tuple(values)
        for rest, values in request.begin_with(_EXTRA).items()
    }
    groups = tuple(request.all_of(_GROUP))
    return User(_first_value(request, _USER), groups, _first_value(request, _UID), extra)


def _first_value(request: Request, header: bytes) -> str:
    return next(iter(request.all_of(header)), "")


def _go_struct(user: User) -> str:
    """The user as Go prints the struct."""
    extra = ", ".join(
        f"{go_quote(key)}:{_strings(values)}" for key, values in sorted(user.extra.items())
    )
    extras = f"map[string][]string{{{extra}}}" if user.extra else "map[string][]string(nil)"
    return (
        f"&user.DefaultInfo{{Name:{go_quote(user.name)}, UID:{go_quote(user.uid)}, "
        f"Groups:{_strings(user.groups)}, Extra:{extras}}}"
    )


def _strings(values: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(go_quote, values))}}}" if values else "[]string(nil)"
