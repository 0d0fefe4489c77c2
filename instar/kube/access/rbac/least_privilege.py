"""Least privilege: generates the smallest roles that cover a user's recorded requests.

Called by ``instar access`` (``cli/commands/access.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes, User, account_of
from instar.kube.access.rbac.policy import GROUP
from instar.kube.access.rbac.rules import PolicyRule, matches

_API = f"{GROUP}/v1"
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class RequestUse(NamedTuple):
    """A recorded request; ``path`` is used only if the request has no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    path: str = ""

    def attributes(self) -> Attributes:
        verb, group, resource, subresource, namespace, path = self
        anonymous = User("")
        return Attributes(anonymous, verb, group, "", resource, subresource, namespace, "", path)


def not_covered(uses: Iterable[RequestUse], held: Iterable[PolicyRule]) -> list[RequestUse]:
    """Return the requests that the held rules do not allow (default roles included)."""
    rules = tuple(held)
    return [use for use in uses if not any(matches(rule, use.attributes()) for rule in rules)]


def rules_for(uses: Iterable[RequestUse]) -> list[PolicyRule]:
    """Return the fewest rules: resources of a group that need the same verbs share one."""
    needed: dict[tuple[str, str], set[str]] = {}
    paths: dict[str, set[str]] = {}
    for use in uses:
        if use.resource:
            name = f"{use.resource}/{use.subresource}" if use.subresource else use.resource
            needed.setdefault((use.group, name), set()).add(use.verb)
        else:
            paths.setdefault(use.path, set()).add(use.verb)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), verbs in sorted(needed.items()):
        together.setdefault((group, _ordered(verbs)), []).append(resource)
    found = [
        PolicyRule(verbs, (group,), tuple(resources))
        for (group, verbs), resources in together.items()
    ]
    alike: dict[tuple[str, ...], list[str]] = {}
    for path, verbs in sorted(paths.items()):
        alike.setdefault(_ordered(verbs), []).append(path)
    return found + [PolicyRule(verbs, urls=tuple(urls)) for verbs, urls in alike.items()]


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    """Sort verbs in the usual order; unknown verbs last."""
    return tuple(sorted(verbs, key=lambda verb: (_rank(verb), verb)))


def _rank(verb: str) -> int:
    return _VERBS.index(verb) if verb in _VERBS else len(_VERBS)


def manifests(
    uses: Iterable[RequestUse], name: str, user: str, *, everywhere: bool
) -> Iterator[Object]:
    """Yield roles and bindings: one pair for the cluster and one per namespace, or all in one."""
    places: dict[str, list[RequestUse]] = {}
    for use in uses:
        # A request for a namespace names that namespace, but needs a cluster role.
        inside = "" if use.resource == "namespaces" and not use.group else use.namespace
        places.setdefault("" if everywhere else inside, []).append(use)
    for namespace, done in sorted(places.items()):
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        rules = [rule.to_object() for rule in rules_for(done)]
        yield {"apiVersion": _API, "kind": kind, "metadata": dict(metadata), "rules": rules}
        yield {
            "apiVersion": _API,
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "subjects": [subject_of(user)],
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        }


def subject_of(user: str) -> Object:
    account = account_of(user)
    if account is None:
        return {"kind": "User", "apiGroup": GROUP, "name": user}
    namespace, name = account
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def grants(uses: Iterable[RequestUse]) -> bool:
    """Return whether roles or bindings were written, which needs more than the verbs."""
    return any(use.group == GROUP and use.verb in ("create", "update", "patch") for use in uses)
