"""Why somebody may do something: every rule that allows it, or what stands nearest. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from instar.kube.access.attributes import ADMIN_GROUP, Attributes
from instar.kube.access.rbac.policy import Grant, RbacPolicy
from instar.kube.access.rbac.rules import PolicyRule, matches

_MOST_NEAR = 5


class GrantReason(NamedTuple):
    grant: Grant
    position: int
    """Which of the role's rules, from 1."""
    rule: PolicyRule
    unfit: tuple[str, ...] = ()
    """What of the question the rule does not cover."""


class Explanation(NamedTuple):
    allowed: bool
    by_group: str = ""
    """A group that needs no rule."""
    reasons: tuple[GrantReason, ...] = ()
    near: tuple[GrantReason, ...] = ()
    """Where nothing allows: rules of the user that fall short of it the least."""
    elsewhere: tuple[str, ...] = ()
    """Namespaces in which it would be allowed."""
    missing: tuple[str, ...] = ()
    """Roles that bindings of the user name and nobody has."""
    bound: int = 0
    """How many bindings apply."""


def explain(policy: RbacPolicy, asked: Attributes, namespaces: tuple[str, ...] = ()) -> Explanation:
    """``namespaces``: where else to look."""
    if ADMIN_GROUP in asked.user.groups:
        return Explanation(True, by_group=ADMIN_GROUP)
    inside = asked.namespace if asked.resource else ""
    grants = policy.grants(asked.user, inside)
    reasons = tuple(each for each in _rules(policy, grants) if matches(each.rule, asked))
    missing = tuple(policy.missing(grants))
    if reasons:
        return Explanation(True, "", reasons, missing=missing, bound=len(grants))
    near = sorted(
        (each._replace(unfit=_unfit(each.rule, asked)) for each in _rules(policy, grants)),
        key=lambda each: len(each.unfit),
    )
    close = tuple(each for each in near if len(each.unfit) == 1)[:_MOST_NEAR]
    elsewhere = tuple(
        namespace
        for namespace in namespaces
        if asked.resource and namespace != inside and _allowed_in(policy, asked, namespace)
    )
    return Explanation(False, "", (), close, elsewhere, missing, len(grants))


def _allowed_in(policy: RbacPolicy, asked: Attributes, namespace: str) -> bool:
    there = asked._replace(namespace=namespace)
    rules = policy.rules(asked.user, namespace)
    return any(matches(rule, there) for rule in rules)


def _rules(policy: RbacPolicy, grants: list[Grant]) -> Iterator[GrantReason]:
    for grant in grants:
        for position, rule in enumerate(policy.granted(grant) or (), start=1):
            yield GrantReason(grant, position, rule)


def _unfit(rule: PolicyRule, asked: Attributes) -> tuple[str, ...]:
    """Each part of the question by itself: does the rule cover it?"""
    found = []
    if not any(verb in ("*", asked.verb) for verb in rule.verbs):
        found.append(f"the verb {asked.verb}")
    if not asked.resource:
        if not matches(rule._replace(verbs=("*",)), asked):
            found.append(f"the path {asked.path}")
        return tuple(found)
    if not rule.resources:
        return (*found, "resources", "groups")
    open_rule = rule._replace(verbs=("*",), names=())
    if not matches(open_rule._replace(groups=("*",)), asked):
        name = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        found.append(f"the resource {name}")
    if not matches(open_rule._replace(resources=("*",)), asked):
        found.append(f'the group "{asked.group}"')
    if rule.names and asked.name not in rule.names:
        found.append(f"the name {asked.name}" if asked.name else "requests without a name")
    return tuple(found)
