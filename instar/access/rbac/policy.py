"""All roles and bindings of a moment, compiled: which rules apply to a user, and why.

Built when a role or binding changed and somebody asks; asked many times in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from instar.access.attributes import User
from instar.access.rbac.rules import PolicyRule, rules_of
from instar.fields import go_quote
from instar.plain import Object

GROUP = "rbac.authorization.k8s.io"
SUBJECT_KINDS = ("User", "Group", "ServiceAccount")


class Grant(NamedTuple):
    """A binding as it applies to one subject."""

    reason: str
    """Upstream's sentence for what this allows."""
    rules: tuple[PolicyRule, ...]
    missing: str = ""
    """The role is not there; then there are no rules."""


class Roles(NamedTuple):
    """Stored objects by key: ``name``, or ``namespace/name``."""

    cluster_roles: Mapping[str, Object]
    roles: Mapping[str, Object]
    cluster_bindings: Mapping[str, Object]
    bindings: Mapping[str, Object]


class Policy:
    def __init__(self, stored: Roles) -> None:
        self._stored = stored
        self._compiled: dict[str, tuple[PolicyRule, ...]] = {}
        self._everywhere: dict[str, list[Grant]] = {}
        """Grants of ClusterRoleBindings, by subject."""
        self._inside: dict[tuple[str, str], list[Grant]] = {}
        """Grants of RoleBindings, by namespace and subject."""
        for binding in stored.cluster_bindings.values():
            self._take(binding, "")
        for key, binding in stored.bindings.items():
            self._take(binding, key.rpartition("/")[0])

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """What applies to the user there: bindings of the whole cluster first."""
        subjects = _subjects_of(user)
        for subject in subjects:
            yield from self._everywhere.get(subject, ())
        if namespace:
            for subject in subjects:
                yield from self._inside.get((namespace, subject), ())

    def rules(self, user: User, namespace: str) -> list[PolicyRule]:
        return [rule for grant in self.grants(user, namespace) for rule in grant.rules]

    def role(self, reference: Object, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules a ``roleRef`` names; None when there is no such role."""
        kind, name = reference.get("kind"), str(reference.get("name", ""))
        place = name if kind == "ClusterRole" else f"{namespace}/{name}"
        found = (self._stored.cluster_roles if kind == "ClusterRole" else self._stored.roles).get(
            place
        )
        if found is None:
            return None
        key = f"{kind}:{place}"
        if key not in self._compiled:
            self._compiled[key] = rules_of(found)
        return self._compiled[key]

    def _take(self, binding: Object, namespace: str) -> None:
        reference = binding.get("roleRef") or {}
        rules = self.role(reference, namespace)
        missing = "" if rules is not None else _missing(reference)
        seen: set[str] = set()
        for subject in binding.get("subjects") or ():
            key = _subject_key(subject, namespace)
            if not key or key in seen:
                continue
            seen.add(key)
            grant = Grant(_reason(binding, reference, subject, namespace), rules or (), missing)
            if namespace:
                self._inside.setdefault((namespace, key), []).append(grant)
            else:
                self._everywhere.setdefault(key, []).append(grant)


def missing_roles(grants: Iterable[Grant]) -> str:
    """Upstream's list of roles that bindings of the user name and nobody has."""
    found = list(dict.fromkeys(grant.missing for grant in grants if grant.missing))
    if not found:
        return ""
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _missing(reference: Object) -> str:
    kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
    if kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {go_quote(kind)}"
    return f"{kind.lower()}.{GROUP} {go_quote(name)} not found"


def _reason(binding: Object, reference: Object, subject: Object, namespace: str) -> str:
    name = binding["metadata"]["name"]
    bound = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
    whom = str(subject.get("name", ""))
    if subject.get("kind") == "ServiceAccount":
        whom = f"{whom}/{subject.get('namespace') or namespace}"
    return (
        f'RBAC: allowed by {bound} of {reference.get("kind")} "{reference.get("name")}" '
        f'to {subject.get("kind")} "{whom}"'
    )


def _subject_key(subject: Object, namespace: str) -> str:
    """A user or group as ``_subjects_of`` spells them; a ServiceAccount is a user with a prefix."""
    kind, name = subject.get("kind"), str(subject.get("name", ""))
    if kind == "ServiceAccount":
        inside = subject.get("namespace") or namespace
        return f"u:system:serviceaccount:{inside}:{name}" if inside else ""
    if kind == "User":
        return f"u:{name}"
    return f"g:{name}" if kind == "Group" else ""


def _subjects_of(user: User) -> tuple[str, ...]:
    return (f"u:{user.name}", *(f"g:{group}" for group in user.groups))
