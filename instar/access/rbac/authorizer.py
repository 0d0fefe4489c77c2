"""RBAC as an ``Authorizer``: decisions are remembered until a role or binding changes.

A decision hardly ever depends on the object's name, so it is remembered without it; only where a
rule lists names the name is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from instar.access.attributes import ADMIN_GROUP, Attributes, User
from instar.access.authorizers import Rules
from instar.access.rbac.policy import Policy, missing_roles
from instar.access.rbac.rules import matches_kind

_REMEMBERED = 16_384


class _Decision(NamedTuple):
    allowed: str | None
    """The reason, whatever the object is called; None: not so."""
    by_name: dict[str, str]
    """Where only rules with names match: name → reason."""
    refused: str
    """What a refusal says besides."""


class RbacAuthorizer:
    def __init__(self, current: Callable[[], Policy]) -> None:
        """``current`` answers the same policy until a role or binding has changed."""
        self._current = current
        self._policy = current()
        self._known: dict[tuple[object, ...], _Decision] = {}

    def refusal(self, asked: Attributes) -> str | None:
        if ADMIN_GROUP in asked.user.groups:
            return None
        decision = self._decision(asked)
        if decision.allowed is not None or asked.name in decision.by_name:
            return None
        return decision.refused

    def reason(self, asked: Attributes) -> str | None:
        """Why it is allowed, as a review tells it; None when it is not."""
        if ADMIN_GROUP in asked.user.groups:
            return ""
        decision = self._decision(asked)
        return (
            decision.allowed if decision.allowed is not None else decision.by_name.get(asked.name)
        )

    def rules(self, user: User, namespace: str) -> tuple[Rules, Rules]:
        resources: Rules = []
        paths: Rules = []
        for rule in self._current().rules(user, namespace):
            shown = rule.to_object()
            if rule.resources:
                resources.append({k: v for k, v in shown.items() if k != "nonResourceURLs"})
            if rule.urls:
                paths.append({"verbs": shown["verbs"], "nonResourceURLs": shown["nonResourceURLs"]})
        return resources, paths

    def _decision(self, asked: Attributes) -> _Decision:
        policy = self._current()
        if policy is not self._policy:
            self._policy = policy
            self._known.clear()
        user, verb, group, _, resource, subresource, namespace, _, path = asked
        where = namespace if resource else path
        key = (user.name, user.groups, verb, group, resource, subresource, where)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = _decide(policy, asked)
        return known


def _decide(policy: Policy, asked: Attributes) -> _Decision:
    namespace = asked.namespace if asked.resource else ""
    grants = list(policy.grants(asked.user, namespace))
    by_name: dict[str, str] = {}
    for grant in grants:
        for rule in grant.rules:
            if not matches_kind(rule, asked):
                continue
            if not rule.names:
                return _Decision(grant.reason, {}, "")
            for name in rule.names:
                by_name.setdefault(name, grant.reason)
    missing = missing_roles(grants)
    return _Decision(None, by_name, f"RBAC: {missing}" if missing else "")
