"""A request's attributes: who, which verb, what, where. One value, made once per request.

Authorizer, usage counter, access log, metrics and admission all take it; nobody parses a path
twice. Knows neither HTTP nor storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from instar.base.fast_dataclass import dataclass

ADMIN_GROUP = "system:masters"
AUTHENTICATED = "system:authenticated"
_LONG_VERBS = ("watch", "proxy")
_LONG_SUBRESOURCES = ("attach", "exec", "proxy", "log", "portforward")


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


ACCOUNT_PREFIX = "system:serviceaccount:"
_ACCOUNTS = "system:serviceaccounts"


def account_name(namespace: str, name: str) -> str:
    """What a ServiceAccount is called as a user."""
    return f"{ACCOUNT_PREFIX}{namespace}:{name}"


def account_of(user: str) -> tuple[str, str] | None:
    """(namespace, name) of a ServiceAccount's user name; None for another's."""
    namespace, colon, name = user.removeprefix(ACCOUNT_PREFIX).partition(":")
    well = user.startswith(ACCOUNT_PREFIX) and colon and namespace and name and ":" not in name
    return (namespace, name) if well else None


def account_groups(namespace: str) -> tuple[str, ...]:
    return (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}")


class Attributes(NamedTuple):
    """``resource`` is empty for a request that names none, and then ``path`` is what counts."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def long_running(self) -> bool:
        """Whether the answer has no end of its own: it is neither counted nor timed as others."""
        return self.verb in _LONG_VERBS or self.subresource in _LONG_SUBRESOURCES


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
"""Whoever shows no credential, where that is allowed."""

OURSELVES = Attributes(User("system:apiserver", (ADMIN_GROUP, AUTHENTICATED)), "")
"""What the server does by itself is asked for by nobody else."""
