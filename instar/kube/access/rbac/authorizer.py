"""RBAC authorizer with a decision cache that is cleared when a role or binding changes.

Used by ``server/access/authorization.py``. Decisions rarely depend on the object's name, so they
are cached without it; names are compared only where a rule lists resourceNames.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import AuthzDecision, AuthzVerdict, Immediate, Rules, UserRules
from instar.kube.access.rbac.policy import RbacPolicy, join_errors
from instar.kube.access.rbac.rules import matches_kind

_MAX_DECISIONS = 16_384
"""Maximum decisions in the cache; the cache is cleared when it has this number."""
_MAX_REQUEST_LENGTH = 2048
"""Maximum characters of a cached request, because a path or a review may be long."""
MOST_RULES = 10_000
"""Rules that ``rules`` lists; the response then says that it is incomplete."""
_MAX_GROUPS = 200
"""Decisions about a user with more groups are not cached."""
_MOST_NAMES = 200_000
"""Maximum object names in the cache, because a rule may list very many."""


class _CachedDecision(NamedTuple):
    """The decision about a request, for any object name or by object name."""

    allowed: AuthzDecision | None
    """Decision for any object name; None if it depends on the name."""
    by_name: dict[str, AuthzDecision]
    """Decisions by name, if only rules with resourceNames match."""
    refused: AuthzDecision


class RbacAuthorizer(Immediate):
    def __init__(self, policy: Callable[[], RbacPolicy]) -> None:
        """``policy`` is called for each decision and may first process pending changes."""
        self._policy = policy
        self._seen: tuple[RbacPolicy | None, int] = (None, 0)
        self._known: dict[tuple[object, ...], _CachedDecision] = {}
        self._names = 0

    def decide(self, attributes: Attributes) -> AuthzDecision:
        policy = self._policy()
        seen, generation = self._seen
        if policy is not seen or policy.generation != generation:
            self._seen = policy, policy.generation
            self._forget()
        user, verb, group, _, resource, subresource, namespace, name, path = attributes
        if len(user.groups) > _MAX_GROUPS:
            found = _decide(policy, attributes)
            return found.allowed or found.by_name.get(name, found.refused)
        where = namespace if resource else path
        key = (user.name, user.groups, verb, group, resource, subresource, where)
        known = self._known.get(key)
        if known is None:
            known = _decide(policy, attributes)
            self._remember(key, known)
        if known.allowed is not None:
            return known.allowed
        return known.by_name.get(name, known.refused)

    def _remember(self, key: tuple[object, ...], known: _CachedDecision) -> None:
        name, groups, *rest = key
        assert isinstance(groups, tuple), "see decide"
        if sum(len(str(part)) for part in (name, *groups, *rest)) > _MAX_REQUEST_LENGTH:
            return
        self._names += len(known.by_name)
        if len(self._known) >= _MAX_DECISIONS or self._names > _MOST_NAMES:
            self._forget()
        self._known[key] = known

    def _forget(self) -> None:
        self._known.clear()
        self._names = 0

    def rules(self, user: User, namespace: str) -> UserRules:
        resources: Rules = []
        paths: Rules = []
        policy = self._policy()
        grants = policy.grants(user, namespace)
        granted = (rule for grant in grants for rule in policy.granted(grant) or ())
        for rule in islice(granted, MOST_RULES):
            shown = rule.to_object()
            if rule.resources:
                resources.append({k: v for k, v in shown.items() if k != "nonResourceURLs"})
            if rule.urls:
                paths.append({"verbs": shown["verbs"], "nonResourceURLs": shown["nonResourceURLs"]})
        missing = policy.missing(grants)
        cut = next(granted, None) is not None
        errors = [*missing, *([f"there are more than {MOST_RULES} rules"] if cut else ())]
        return UserRules(
            resources, paths, incomplete=cut, error=join_errors(errors) if errors else ""
        )


def _decide(policy: RbacPolicy, attributes: Attributes) -> _CachedDecision:
    grants = policy.grants(attributes.user, attributes.namespace if attributes.resource else "")
    by_name: dict[str, AuthzDecision] = {}
    missing = policy.missing(grants)
    refused = AuthzDecision(
        AuthzVerdict.NO_OPINION, f"RBAC: {join_errors(missing)}" if missing else ""
    )
    for grant in grants:
        for rule in policy.granted(grant) or ():
            if not matches_kind(rule, attributes):
                continue
            allowed = AuthzDecision(AuthzVerdict.ALLOW, grant.reason)
            if not rule.names:
                return _CachedDecision(allowed, by_name, refused)
            for name in rule.names:
                by_name.setdefault(name, allowed)
    return _CachedDecision(None, by_name, refused)
