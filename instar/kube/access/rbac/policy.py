"""Index of all roles and bindings: finds the rules that apply to a user, and why.

Kept up to date by ``server/registry/stored/rbac_policy.py`` through ``put_*`` and ``drop_*``; read
by ``authorizer.py``, the admission plugin ``server/registry/admission/plugins/rbac_escalation.py``
and ``instar access``. A role's rules are compiled on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.access.attributes import User, account_name
from instar.kube.access.rbac.rules import PolicyRule, RoleRules, rules_of

GROUP = "rbac.authorization.k8s.io"
SUBJECT_KINDS = ("User", "Group", "ServiceAccount")
_MAX_GROUP_LOOKUPS = 100
"""Up to this number of groups, every group of a user is looked up."""
Place = tuple[str, str]
"""Namespace (empty for the whole cluster) and name."""


class Grant(NamedTuple):
    """A binding as it applies to one subject."""

    binding: Place
    role_kind: str
    role_name: str
    subject_kind: str
    subject_name: str
    position: int
    """Position of the subject in the binding: the first match is reported."""

    @property
    def bound(self) -> str:
        namespace, name = self.binding
        return f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'

    @property
    def reason(self) -> str:
        """Return upstream's sentence for an allowed request."""
        return (
            f'RBAC: allowed by {self.bound} of {self.role_kind} "{self.role_name}" '
            f'to {self.subject_kind} "{self.subject_name}"'
        )

    @property
    def missing(self) -> str:
        """Return upstream's sentence for a role that does not exist."""
        if self.role_kind not in ("Role", "ClusterRole"):
            return f"unsupported role reference kind: {go_quote(self.role_kind)}"
        return f"{self.role_kind.lower()}.{GROUP} {go_quote(self.role_name)} not found"


class RbacPolicy:
    """The index. ``generation`` increases with every change."""

    def __init__(self) -> None:
        self.generation = 0
        self._roles: dict[Place, Object] = {}
        self._rules: dict[Place, RoleRules] = {}
        self._subjects: dict[Place, tuple[str, ...]] = {}
        """By binding: the subjects under which it is indexed."""
        self._grants: dict[tuple[str, str], dict[str, Grant]] = {}
        """By namespace and subject, then by the binding's name."""

    def put_role(self, place: Place, role: Object) -> None:
        self.generation += 1
        self._rules.pop(place, None)
        self._roles[place] = role

    def drop_role(self, place: Place) -> None:
        self.generation += 1
        self._rules.pop(place, None)
        self._roles.pop(place, None)

    def put_binding(self, place: Place, binding: Object) -> None:
        self.drop_binding(place)
        namespace, name = place
        kind, role = role_reference(binding)
        found: dict[str, None] = {}  # a binding may name very many subjects
        for position, subject in enumerate(_objects(binding.get("subjects"))):
            key = _subject_key(subject, namespace)
            if not key or key in found:
                continue
            found[key] = None
            shown = _subject_text(subject, namespace)
            grant = Grant(place, kind, role, str(subject.get("kind", "")), shown, position)
            self._grants.setdefault((namespace, key), {})[name] = grant
        self._subjects[place] = tuple(found)

    def drop_binding(self, place: Place) -> None:
        self.generation += 1
        namespace, name = place
        for key in self._subjects.pop(place, ()):
            grants = self._grants[namespace, key]
            del grants[name]
            if not grants:
                del self._grants[namespace, key]

    def grants(self, user: User, namespace: str) -> list[Grant]:
        """Return the bindings that apply to the user there, by name; cluster bindings first."""
        subjects = self._subjects_of(user)
        places = ("", namespace) if namespace else ("",)
        return [grant for place in places for grant in self._grants_in(place, subjects)]

    def _subjects_of(self, user: User) -> Iterable[str]:
        """Return the subjects of a user. Groups that no binding names are left out, because a
        review may name very many."""
        if len(user.groups) <= max(len(self._grants), _MAX_GROUP_LOOKUPS):
            return (f"u:{user.name}", *(f"g:{group}" for group in user.groups))
        groups = set(user.groups)
        bound = (key for _, key in self._grants if key.startswith("g:") and key[2:] in groups)
        return dict.fromkeys((f"u:{user.name}", *bound))

    def _grants_in(self, namespace: str, subjects: Iterable[str]) -> list[Grant]:
        found: dict[str, Grant] = {}
        for subject in subjects:
            for name, grant in self._grants.get((namespace, subject), {}).items():
                known = found.get(name)
                if known is None or grant.position < known.position:
                    found[name] = grant
        return [found[name] for name in sorted(found)]

    def granted(self, grant: Grant) -> RoleRules | None:
        """Return the role's rules; None when the role does not exist."""
        return self.role(grant.role_kind, grant.role_name, grant.binding[0])

    def rules(self, user: User, namespace: str) -> list[PolicyRule]:
        grants = self.grants(user, namespace)
        return [rule for grant in grants for rule in self.granted(grant) or ()]

    def role(self, kind: str, name: str, namespace: str) -> RoleRules | None:
        """Return the rules of the role that a ``roleRef`` names; None when there is no such
        role."""
        if kind not in ("Role", "ClusterRole") or (kind == "Role" and not namespace):
            return None
        place = (namespace if kind == "Role" else "", name)
        known = self._rules.get(place)
        if known is None and place in self._roles:
            known = self._rules[place] = rules_of(self._roles[place])
        return known

    def missing(self, grants: Iterable[Grant]) -> list[str]:
        """Return the roles that bindings of the user name and that do not exist."""
        missing = (grant.missing for grant in grants if self.granted(grant) is None)
        return list(dict.fromkeys(missing))


def role_reference(binding: Object) -> tuple[str, str]:
    """Return kind and name of the binding's role."""
    reference = binding.get("roleRef")
    if not isinstance(reference, dict):
        return "", ""
    return str(reference.get("kind", "")), str(reference.get("name", ""))


def _objects(value: Any) -> Iterator[Object]:
    """Yield the objects of a list; anything else (written directly to the store) grants nothing."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def join_errors(texts: list[str]) -> str:
    """Return several errors as Go prints them as one."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _subject_text(subject: Object, namespace: str) -> str:
    name = str(subject.get("name", ""))
    if subject.get("kind") != "ServiceAccount":
        return name
    return f"{name}/{subject.get('namespace') or namespace}"


def _subject_key(subject: Object, namespace: str) -> str:
    """Return the index key of a user or group; a ServiceAccount is a user with a prefix."""
    kind, name = subject.get("kind"), str(subject.get("name", ""))
    if kind == "ServiceAccount":
        inside = subject.get("namespace") or namespace
        return f"u:{account_name(inside, name)}" if inside else ""
    if kind == "User":
        return f"u:{name}"
    return f"g:{name}" if kind == "Group" else ""
