"""Acting as somebody else: what the one who asks must be allowed, mode by mode. Pure.

A mode is a way of being allowed to: the constrained ones look at what is asked and at whom it is
asked as, the legacy one only at the latter. The first that allows all of its checks wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from instar.kube.access.attributes import (
    AUTHENTICATED,
    Attributes,
    User,
    account_groups,
    account_of,
)

_AUTHENTICATION = "authentication.k8s.io"
_NODE = "system:node:"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_MANY = 4
"""So many groups or extras are first asked for as ``*``."""
_MASTERS_REFUSED = "impersonating the system:masters group is not allowed"


class Check(NamedTuple):
    asked: Attributes
    instead: tuple[Attributes, ...] = ()
    """Where ``asked`` stands for all of these and is not allowed, each of them has to be."""
    refused: str = ""
    """Never allowed, and why."""


class Mode(NamedTuple):
    name: str
    checks: tuple[Check, ...]
    groups: tuple[str, ...] = ()
    """What whoever is asked as is a member of, where no groups are named."""

    @property
    def constraint(self) -> str:
        """As an audit log tells it; empty for the legacy mode."""
        return f"impersonate:{self.name}" if self.name != LEGACY else ""


LEGACY = "legacy"


def modes(asked: Attributes, wanted: User) -> Iterator[Mode]:
    """Those that fit the request, in the order in which they are tried."""
    alone = not (wanted.groups or wanted.uid or wanted.extra)
    node = wanted.name.removeprefix(_NODE) if wanted.name.startswith(_NODE) else ""
    account = account_of(wanted.name)
    if alone and node:
        if asked.user.extra.get(_NODE_NAME) == (node,) and account_of(asked.user.name):
            yield _constrained(asked, "associated-node", "nodes", "*", groups=("system:nodes",))
        yield _constrained(asked, "arbitrary-node", "nodes", node, groups=("system:nodes",))
    elif alone and account is not None:
        namespace, name = account
        groups = account_groups(namespace)
        yield _constrained(asked, "serviceaccount", "serviceaccounts", name, namespace, groups)
    elif not node and account is None:
        yield _user_info(asked, wanted)
    yield _legacy(asked, wanted, account)


def resulting(wanted: User, mode: Mode) -> User:
    """Who the request is of then."""
    groups = wanted.groups or mode.groups
    if wanted.name == "system:anonymous":
        groups = _with(groups, "system:unauthenticated")
    elif "system:unauthenticated" not in groups:
        groups = _with(groups, AUTHENTICATED)
    return User(wanted.name, groups, wanted.uid, wanted.extra)


def _with(groups: tuple[str, ...], one: str) -> tuple[str, ...]:
    return groups if one in groups else (*groups, one)


def _request(asked: Attributes, mode: str) -> Check:
    """Whether this very request may be made as somebody else."""
    return Check(asked._replace(verb=f"impersonate-on:{mode}:{asked.verb}"))


def _identity(
    asked: Attributes,
    verb: str,
    resource: str,
    name: str,
    namespace: str = "",
    group: str = _AUTHENTICATION,
) -> Attributes:
    resource, _, subresource = resource.partition("/")
    version = "v1"
    return Attributes(asked.user, verb, group, version, resource, subresource, namespace, name)


def _constrained(
    asked: Attributes,
    mode: str,
    resource: str,
    name: str,
    namespace: str = "",
    groups: tuple[str, ...] = (),
) -> Mode:
    whom = Check(_identity(asked, f"impersonate:{mode}", resource, name, namespace))
    return Mode(mode, (_request(asked, mode), whom), groups)


def _user_info(asked: Attributes, wanted: User) -> Mode:
    verb = "impersonate:user-info"
    checks = [
        _request(asked, "user-info"),
        Check(_identity(asked, verb, "users", wanted.name)),
    ]
    if wanted.uid:
        checks.append(Check(_identity(asked, verb, "uids", wanted.uid)))
    each = [_identity(asked, verb, "groups", group) for group in wanted.groups]
    for one in each:
        if one.name in ("system:masters", ""):
            why = _MASTERS_REFUSED if one.name else "impersonating an empty group is not allowed"
            checks.append(Check(one, refused=why))
    checks += _of_many(asked, verb, "groups", each)
    for key, values in wanted.extra.items():
        told = [_identity(asked, verb, f"userextras/{key}", value) for value in values]
        if not _is_prefixed(key):
            checks.append(Check(told[0], refused="extra keys must be lower-case and have a domain"))
        checks += _of_many(asked, verb, f"userextras/{key}", told)
    return Mode("user-info", tuple(checks))


def _of_many(asked: Attributes, verb: str, resource: str, each: list[Attributes]) -> list[Check]:
    if len(each) < _MANY:
        return [Check(one) for one in each]
    return [Check(_identity(asked, verb, resource, "*"), tuple(each))]


def _is_prefixed(key: str) -> bool:
    domain, slash, name = key.partition("/")
    return bool(slash and domain and name) and key == key.lower()


def _legacy(asked: Attributes, wanted: User, account: tuple[str, str] | None) -> Mode:
    verb, checks = "impersonate", []
    if account is not None:
        namespace, name = account
        checks.append(_identity(asked, verb, "serviceaccounts", name, namespace, ""))
    else:
        checks.append(_identity(asked, verb, "users", wanted.name, group=""))
    if wanted.uid:
        checks.append(_identity(asked, verb, "uids", wanted.uid))
    checks += (_identity(asked, verb, "groups", group, group="") for group in wanted.groups)
    for key, values in wanted.extra.items():
        checks += (_identity(asked, verb, f"userextras/{key}", value) for value in values)
    groups = account_groups(account[0]) if account is not None else ()
    return Mode(LEGACY, tuple(map(Check, checks)), groups)
