"""Explains an RBAC decision: every rule that allows the request, or the nearest rules that do not.

Called by ``instar access`` (``cli/commands/access.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from instar.kube.access.attributes import ADMIN_GROUP, Attributes
from instar.kube.access.rbac.policy import Grant, RbacPolicy
from instar.kube.access.rbac.rules import PolicyRule, matches

_MAX_NEAR_RULES = 5


class GrantReason(NamedTuple):
    """A rule that allows a request, or misses parts of it, with its role and binding."""

    grant: Grant
    position: int
    """Number of the rule within the role, from 1."""
    rule: PolicyRule
    unfit: tuple[str, ...] = ()
    """Parts of the request that the rule does not cover."""


class Explanation(NamedTuple):
    """The decision about a request and the rules behind it."""

    allowed: bool
    by_group: str = ""
    """A group that needs no rule (``system:masters``)."""
    reasons: tuple[GrantReason, ...] = ()
    near: tuple[GrantReason, ...] = ()
    """If nothing allows it: the user's rules that miss the fewest parts."""
    elsewhere: tuple[str, ...] = ()
    """Namespaces in which it would be allowed."""
    missing: tuple[str, ...] = ()
    """Roles that the user's bindings name and that do not exist."""
    bound: int = 0
    """Number of bindings that apply."""


def explain(
    policy: RbacPolicy, attributes: Attributes, namespaces: tuple[str, ...] = ()
) -> Explanation:
    """Explain a decision; ``namespaces`` are searched for other places where it is allowed."""
    if ADMIN_GROUP in attributes.user.groups:
        return Explanation(True, by_group=ADMIN_GROUP)
    inside = attributes.namespace if attributes.resource else ""
    grants = policy.grants(attributes.user, inside)
    reasons = tuple(each for each in _rules(policy, grants) if matches(each.rule, attributes))
    missing = tuple(policy.missing(grants))
    if reasons:
        return Explanation(True, "", reasons, missing=missing, bound=len(grants))
    near = sorted(
        (each._replace(unfit=_unfit(each.rule, attributes)) for each in _rules(policy, grants)),
        key=lambda each: len(each.unfit),
    )
    close = tuple(each for each in near if len(each.unfit) == 1)[:_MAX_NEAR_RULES]
    elsewhere = tuple(
        namespace
        for namespace in namespaces
        if attributes.resource
        and namespace != inside
        and _allowed_in(policy, attributes, namespace)
    )
    return Explanation(False, "", (), close, elsewhere, missing, len(grants))


def _allowed_in(policy: RbacPolicy, attributes: Attributes, namespace: str) -> bool:
    there = attributes._replace(namespace=namespace)
    rules = policy.rules(attributes.user, namespace)
    return any(matches(rule, there) for rule in rules)


def _rules(policy: RbacPolicy, grants: list[Grant]) -> Iterator[GrantReason]:
    for grant in grants:
        for position, rule in enumerate(policy.granted(grant) or (), start=1):
            yield GrantReason(grant, position, rule)


def _unfit(rule: PolicyRule, attributes: Attributes) -> tuple[str, ...]:
    """Return the parts of the request that the rule does not cover."""
    found = []
    if not any(verb in ("*", attributes.verb) for verb in rule.verbs):
        found.append(f"the verb {attributes.verb}")
    if not attributes.resource:
        if not matches(rule._replace(verbs=("*",)), attributes):
            found.append(f"the path {attributes.path}")
        return tuple(found)
    if not rule.resources:
        return (*found, "resources", "groups")
    open_rule = rule._replace(verbs=("*",), names=())
    if not matches(open_rule._replace(groups=("*",)), attributes):
        name = (
            f"{attributes.resource}/{attributes.subresource}"
            if attributes.subresource
            else attributes.resource
        )
        found.append(f"the resource {name}")
    if not matches(open_rule._replace(resources=("*",)), attributes):
        found.append(f'the group "{attributes.group}"')
    if rule.names and attributes.name not in rule.names:
        found.append(
            f"the name {attributes.name}" if attributes.name else "requests without a name"
        )
    return tuple(found)
