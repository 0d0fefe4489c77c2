"""RBAC authorizer with a decision cache that is cleared when a role or binding changes.

Used by ``server/access/authorization.py``. Decisions rarely depend on the object's name, so they
are cached without it; names are compared only where a rule lists resourceNames.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from instar.base import offload
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import AuthzDecision, AuthzVerdict, Rules, UserRules
from instar.kube.access.rbac.policy import Grant, RbacPolicy, join_errors
from instar.kube.access.rbac.rules import RoleRules, matches_kind

_MAX_DECISIONS = 16_384
"""Maximum decisions in the cache; the cache is cleared when it has this number."""
_MAX_REQUEST_LENGTH = 2048
"""Maximum characters of a cached request, because a path or a review may be long."""
MOST_RULES = 10_000
"""Rules that ``rules`` lists; the response then says that it is incomplete."""
_MOST_IN_LOOP = 50_000
"""Words of rules that a decision looks at in the event loop; more are looked at in a thread."""
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

    def of(self, name: str) -> AuthzDecision:
        return self.allowed or self.by_name.get(name, self.refused)


class RbacAuthorizer:
    """Allows a request if a rule of a role that is bound to the user matches it."""

    def __init__(self, policy: Callable[[], RbacPolicy]) -> None:
        """``policy`` is called for each decision and may first process pending changes."""
        self._policy = policy
        self._seen: tuple[RbacPolicy | None, int] = (None, 0)
        self._known: dict[tuple[object, ...], _CachedDecision] = {}
        self._names = 0

    def decide(self, attributes: Attributes) -> AuthzDecision | None:
        """Decide at once; None if the user has so many rules that a thread must look at them."""
        key, policy = self._key(attributes), self._policy_now()
        known = self._known.get(key) if key is not None else None
        if known is None:
            question = _Question(policy, attributes)
            if question.weight > _MOST_IN_LOOP:
                return None
            known = question.answer()
            self._remember(key, known)
        return known.of(attributes.name)

    async def ask(self, attributes: Attributes) -> AuthzDecision:
        decision = self.decide(attributes)
        if decision is not None:
            return decision
        question = _Question(self._policy_now(), attributes)
        seen = self._seen
        known = await offload.run_in_thread(question.answer)
        if seen == self._seen:
            self._remember(self._key(attributes), known)
        return known.of(attributes.name)

    def used(self, attributes: Attributes) -> None:
        return

    def _policy_now(self) -> RbacPolicy:
        policy = self._policy()
        seen, generation = self._seen
        if policy is not seen or policy.generation != generation:
            self._seen = policy, policy.generation
            self._forget()
        return policy

    def _key(self, attributes: Attributes) -> tuple[object, ...] | None:
        """Return what a cached decision depends on; None if it is not cached."""
        user, verb, group, _, resource, subresource, namespace, _, path, *_ = attributes
        if len(user.groups) > _MAX_GROUPS:
            return None
        where = namespace if resource else path
        return (user.name, user.groups, verb, group, resource, subresource, where)

    def _remember(self, key: tuple[object, ...] | None, known: _CachedDecision) -> None:
        if key is None:
            return
        name, groups, *rest = key
        assert isinstance(groups, tuple), "see _key"
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


class _Question:
    """What a decision looks at, taken out of the index, so that a thread can make it."""

    def __init__(self, policy: RbacPolicy, attributes: Attributes) -> None:
        grants = policy.grants(attributes.user, attributes.namespace if attributes.resource else "")
        self._attributes = attributes
        self._missing = policy.missing(grants)
        roles: dict[int, tuple[Grant, RoleRules]] = {}
        for grant in grants:
            rules = policy.granted(grant)
            if rules is not None:  # a role that several bindings name is looked at once
                roles.setdefault(id(rules), (grant, rules))
        self._roles = list(roles.values())
        self.weight = sum(rules.weight for _, rules in self._roles)

    def answer(self) -> _CachedDecision:
        by_name: dict[str, AuthzDecision] = {}
        missing = self._missing
        refused = AuthzDecision(
            AuthzVerdict.NO_OPINION, f"RBAC: {join_errors(missing)}" if missing else ""
        )
        for grant, rules in self._roles:
            allowed = AuthzDecision(AuthzVerdict.ALLOW, grant.reason)
            for rule in rules:
                if not matches_kind(rule, self._attributes):
                    continue
                if not rule.names:
                    return _CachedDecision(allowed, by_name, refused)
                for name in rule.names:
                    by_name.setdefault(name, allowed)
        return _CachedDecision(None, by_name, refused)
