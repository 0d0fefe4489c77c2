"""RBAC policy rules: matching requests, text form, and which rules cover which.

Called by the RBAC authorizer, the escalation check and ``instar access``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes

ALL = "*"


class PolicyRule(NamedTuple):
    """A rule of a Role or ClusterRole."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the rule as upstream prints it in a denial."""
        members = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("ResourceNames", self.names),
            ("NonResourceURLs", self.urls),
            ("Verbs", self.verbs),
        )
        shown = (
            f"{name}:[{' '.join(map(go_quote, values))}]" for name, values in members if values
        )
        return "{" + ", ".join(shown) + "}"

    def to_object(self) -> Object:
        members = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {
            "verbs": list(self.verbs),
            **{name: list(values) for name, values in members.items() if values},
        }


class RoleRules(tuple[PolicyRule, ...]):
    """The rules of one role. ``weight`` is the number of their words: what a decision may have to
    look at."""

    weight: int = 0


def rules_of(role: Object) -> RoleRules:
    """Return the rules of a stored Role or ClusterRole; malformed rules grant nothing."""
    found = role.get("rules")
    listed = found if isinstance(found, list) else ()
    rules = RoleRules(rule_of(rule) for rule in listed if isinstance(rule, dict))
    rules.weight = sum(1 + sum(map(len, rule)) for rule in rules)
    return rules


def rule_of(rule: Object) -> PolicyRule:
    """Read a rule of a Role from its JSON."""
    return PolicyRule(
        _texts(rule.get("verbs")),
        _texts(rule.get("apiGroups")),
        _texts(rule.get("resources")),
        _texts(rule.get("resourceNames")),
        _texts(rule.get("nonResourceURLs")),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def matches_kind(rule: PolicyRule, attributes: Attributes) -> bool:
    """Return whether everything but the name matches: verb, group, resource or path."""
    if not (ALL in rule.verbs or attributes.verb in rule.verbs):
        return False
    if not attributes.resource:
        return any(_url_covers(url, attributes.path) for url in rule.urls)
    if not (ALL in rule.groups or attributes.group in rule.groups):
        return False
    if not attributes.subresource:
        return ALL in rule.resources or attributes.resource in rule.resources
    resources = rule.resources
    return (
        ALL in resources
        or f"{attributes.resource}/{attributes.subresource}" in resources
        or f"*/{attributes.subresource}" in resources
    )


def matches(rule: PolicyRule, attributes: Attributes) -> bool:
    """Return whether a rule allows a request."""
    return matches_kind(rule, attributes) and (not rule.names or attributes.name in rule.names)


def _url_covers(rule: str, path: str) -> bool:
    if rule in (ALL, path):
        return True
    return rule.endswith(ALL) and path.startswith(rule.rstrip(ALL))


def uncovered_rules(owned: Iterable[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the parts of ``wanted`` that no single rule of ``owned`` covers, joined by verb."""
    holdings = list(owned)
    missing = [
        atom
        for rule in wanted
        for atom in _atoms(rule)
        if not any(_covers(holding, atom) for holding in holdings)
    ]
    return _join_verbs(missing)


def comparisons(owned: int, wanted: Iterable[PolicyRule]) -> int:
    """Return the maximum number of steps of ``uncovered_rules`` for ``owned`` rules."""
    atoms = 0
    for rule in wanted:
        kinds = len(rule.groups) * len(rule.resources) * max(1, len(rule.names))
        atoms += (kinds + len(rule.urls)) * len(rule.verbs)
    return atoms * max(1, owned)


def _atoms(rule: PolicyRule) -> Iterator[PolicyRule]:
    """Yield the smallest grants that a rule consists of."""
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                if not rule.names:
                    yield PolicyRule((verb,), (group,), (resource,))
                for name in rule.names:
                    yield PolicyRule((verb,), (group,), (resource,), (name,))
    for url in rule.urls:
        for verb in rule.verbs:
            yield PolicyRule((verb,), urls=(url,))


def _covers(holding: PolicyRule, atom: PolicyRule) -> bool:
    [verb] = atom.verbs
    if not (ALL in holding.verbs or verb in holding.verbs):
        return False
    if atom.urls:
        return any(_url_covers(url, atom.urls[0]) for url in holding.urls)
    [group], [resource] = atom.groups, atom.resources
    if not (ALL in holding.groups or group in holding.groups):
        return False
    if not _covers_resource(holding.resources, resource):
        return False
    return not holding.names or (bool(atom.names) and atom.names[0] in holding.names)


def _covers_resource(holdings: tuple[str, ...], resource: str) -> bool:
    if ALL in holdings or resource in holdings:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in holdings


def _join_verbs(atoms: list[PolicyRule]) -> list[PolicyRule]:
    """Join atoms that differ only in their verb into one rule; paths stay single."""
    verbs: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    alone = []
    for atom in atoms:
        if atom.urls:
            alone.append(atom)
            continue
        found = verbs.setdefault((atom.groups, atom.resources, atom.names), [])
        if atom.verbs[0] not in found:
            found.append(atom.verbs[0])
    joined = [PolicyRule(tuple(words), *place) for place, words in verbs.items()]
    return sorted([*joined, *dict.fromkeys(alone)], key=str)
