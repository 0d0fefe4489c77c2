"""``Attributes``: user, verb, resource, namespace and name of a request.

Built once per request by ``server/app.py``; the authorizer, the usage counter, the access log,
metrics and admission all use it, so that the path is parsed only once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from instar.base.fast_dataclass import dataclass

ADMIN_GROUP = "system:masters"
AUTHENTICATED = "system:authenticated"
"""Group of all authenticated users."""
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
    """Return the user name of a ServiceAccount."""
    return f"{ACCOUNT_PREFIX}{namespace}:{name}"


def account_of(user: str) -> tuple[str, str] | None:
    """Return (namespace, name) of a ServiceAccount's user name; None for other users."""
    namespace, colon, name = user.removeprefix(ACCOUNT_PREFIX).partition(":")
    well = user.startswith(ACCOUNT_PREFIX) and colon and namespace and name and ":" not in name
    return (namespace, name) if well else None


def account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of the ServiceAccounts of a namespace."""
    return (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}")


class Attributes(NamedTuple):
    """Attributes of a request; ``resource`` is empty for a non-resource request, which has a
    ``path``."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_selector: str = ""
    """Of a list, watch or deletion of a collection, as the client sent it."""
    label_selector: str = ""

    @property
    def long_running(self) -> bool:
        """Return whether the request is long-running (such as a watch), which is not counted and
        timed like others."""
        return self.verb in _LONG_VERBS or self.subresource in _LONG_SUBRESOURCES


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
"""The user of requests without credentials, where anonymous access is enabled."""

OURSELVES = Attributes(User("system:apiserver", (ADMIN_GROUP, AUTHENTICATED)), "")
"""Attributes of the server's own writes."""
