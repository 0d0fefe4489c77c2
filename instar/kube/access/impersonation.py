"""Impersonation: which permissions a request with ``Impersonate-*`` headers needs, by mode.

Called by ``server/access/impersonation.py``, which runs the checks. The constrained modes check the
request and the impersonated user, the legacy mode only the user. The first mode whose checks are
all allowed is used.
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
_MANY_VALUES = 4
"""From this number on, groups or extras are first checked as ``*``."""
_MASTERS_REFUSED = "impersonating the system:masters group is not allowed"


class Check(NamedTuple):
    """One permission that impersonation needs."""

    asked: Attributes
    instead: tuple[Attributes, ...] = ()
    """If ``asked`` stands for all of these and is denied, each of them must be allowed."""
    refused: str = ""
    """Reason of a check that is always denied."""


class Mode(NamedTuple):
    """One way in which impersonation can be allowed: all its checks must pass."""

    name: str
    checks: tuple[Check, ...]
    groups: tuple[str, ...] = ()
    """Groups of the impersonated user if the request names none."""

    @property
    def constraint(self) -> str:
        """The mode in the audit log; empty for the legacy mode."""
        return f"impersonate:{self.name}" if self.name != LEGACY else ""


LEGACY = "legacy"


def modes(attributes: Attributes, wanted: User) -> Iterator[Mode]:
    """Yield the modes that fit the request, in the order in which they are tried."""
    alone = not (wanted.groups or wanted.uid or wanted.extra)
    node = wanted.name.removeprefix(_NODE) if wanted.name.startswith(_NODE) else ""
    account = account_of(wanted.name)
    if alone and node:
        if attributes.user.extra.get(_NODE_NAME) == (node,) and account_of(attributes.user.name):
            yield _constrained_mode(
                attributes, "associated-node", "nodes", "*", groups=("system:nodes",)
            )
        yield _constrained_mode(
            attributes, "arbitrary-node", "nodes", node, groups=("system:nodes",)
        )
    elif alone and account is not None:
        namespace, name = account
        groups = account_groups(namespace)
        yield _constrained_mode(
            attributes, "serviceaccount", "serviceaccounts", name, namespace, groups
        )
    elif not node and account is None:
        yield _user_info(attributes, wanted)
    yield _legacy_mode(attributes, wanted, account)


def impersonated_user(wanted: User, mode: Mode) -> User:
    """Return the impersonated user."""
    groups = wanted.groups or mode.groups
    if wanted.name == "system:anonymous":
        groups = _with_group(groups, "system:unauthenticated")
    elif "system:unauthenticated" not in groups:
        groups = _with_group(groups, AUTHENTICATED)
    return User(wanted.name, groups, wanted.uid, wanted.extra)


def _with_group(groups: tuple[str, ...], one: str) -> tuple[str, ...]:
    return groups if one in groups else (*groups, one)


def _request(attributes: Attributes, mode: str) -> Check:
    """Return the check whether this request may be made by impersonation."""
    return Check(attributes._replace(verb=f"impersonate-on:{mode}:{attributes.verb}"))


def _identity(
    attributes: Attributes,
    verb: str,
    resource: str,
    name: str,
    namespace: str = "",
    group: str = _AUTHENTICATION,
) -> Attributes:
    resource, _, subresource = resource.partition("/")
    version = "v1"
    return Attributes(attributes.user, verb, group, version, resource, subresource, namespace, name)


def _constrained_mode(
    attributes: Attributes,
    mode: str,
    resource: str,
    name: str,
    namespace: str = "",
    groups: tuple[str, ...] = (),
) -> Mode:
    user_check = Check(_identity(attributes, f"impersonate:{mode}", resource, name, namespace))
    return Mode(mode, (_request(attributes, mode), user_check), groups)


def _user_info(attributes: Attributes, wanted: User) -> Mode:
    verb = "impersonate:user-info"
    checks = [
        _request(attributes, "user-info"),
        Check(_identity(attributes, verb, "users", wanted.name)),
    ]
    if wanted.uid:
        checks.append(Check(_identity(attributes, verb, "uids", wanted.uid)))
    each = [_identity(attributes, verb, "groups", group) for group in wanted.groups]
    for one in each:
        if one.name in ("system:masters", ""):
            why = _MASTERS_REFUSED if one.name else "impersonating an empty group is not allowed"
            checks.append(Check(one, refused=why))
    checks += _checks_of_values(attributes, verb, "groups", each)
    for key, values in wanted.extra.items():
        each = [_identity(attributes, verb, f"userextras/{key}", value) for value in values]
        if not _is_prefixed(key):
            checks.append(Check(each[0], refused="extra keys must be lower-case and have a domain"))
        checks += _checks_of_values(attributes, verb, f"userextras/{key}", each)
    return Mode("user-info", tuple(checks))


def _checks_of_values(
    attributes: Attributes, verb: str, resource: str, each: list[Attributes]
) -> list[Check]:
    if len(each) < _MANY_VALUES:
        return [Check(one) for one in each]
    return [Check(_identity(attributes, verb, resource, "*"), tuple(each))]


def _is_prefixed(key: str) -> bool:
    domain, slash, name = key.partition("/")
    return bool(slash and domain and name) and key == key.lower()


def _legacy_mode(attributes: Attributes, wanted: User, account: tuple[str, str] | None) -> Mode:
    verb, checks = "impersonate", []
    if account is not None:
        namespace, name = account
        checks.append(_identity(attributes, verb, "serviceaccounts", name, namespace, ""))
    else:
        checks.append(_identity(attributes, verb, "users", wanted.name, group=""))
    if wanted.uid:
        checks.append(_identity(attributes, verb, "uids", wanted.uid))
    checks += (_identity(attributes, verb, "groups", group, group="") for group in wanted.groups)
    for key, values in wanted.extra.items():
        checks += (_identity(attributes, verb, f"userextras/{key}", value) for value in values)
    groups = account_groups(account[0]) if account is not None else ()
    return Mode(LEGACY, tuple(map(Check, checks)), groups)
