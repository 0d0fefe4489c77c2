"""Text form of RBAC rules, for the default roles of this package.

A rule is a line ``verbs | groups | resources``, with ``| names`` where it is limited to named
objects, or ``verbs | paths``. Words are separated by spaces. ``core`` is the group without a name,
``read`` is ``get list watch``, ``write`` is ``create delete deletecollection patch update``, and
the line ``events`` lets a component record events. In a block of several roles a role's name stands
at the start of a line, its rules are indented by four spaces, and a line indented by eight spaces
continues the rule before it. Used by ``defaults.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object

_EVENTS = "create patch update | core events.k8s.io | events"
_VERBS = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}


def rules_by_role(block: str) -> dict[str, tuple[str, ...]]:
    """Return role name → rule lines."""
    return {name: tuple(lines) for name, lines in _roles(block)}


def _roles(block: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in block.strip().splitlines():
        if line.startswith(" " * 8):
            lines[-1] += f" {line.strip()}"
        elif line.startswith(" "):
            lines.append(line.strip())
        else:
            if name:
                yield name, lines
            name, lines = line, []
    yield name, lines


def rule_from_line(line: str) -> Object:
    """Return the rule as RBAC objects have it, its words sorted as kube-apiserver sorts them."""
    words, *rest = (part.split() for part in (_EVENTS if line == "events" else line).split(" | "))
    verbs = sorted(verb for word in words for verb in _VERBS.get(word, (word,)))
    if len(rest) == 1:
        return {"verbs": verbs, "nonResourceURLs": sorted(rest[0])}
    groups, resources, *names = rest
    rule: Object = {
        "verbs": verbs,
        "apiGroups": sorted("" if group == "core" else group for group in groups),
        "resources": sorted(resources),
    }
    if names:
        rule["resourceNames"] = sorted(names[0])
    return rule
