"""Rules of webhook configurations and policies: operations, groups, versions, resources, scope.

Called by ``matching.py``, and by the reviewer to predict whether a rule would match.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.kube.api.names import GroupVersionKind

EVERY = "*"
"""Wildcard of a rule."""


class RequestEndpoint(NamedTuple):
    """A resource at a version, and the kind that is read and written there."""

    group: str
    version: str
    resource: str
    kind: GroupVersionKind

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True)
class MatchedRequest:
    """The parts of a request that rules compare."""

    operation: str
    endpoint: RequestEndpoint
    subresource: str = ""
    namespace: str = ""
    """For a Namespace its own name."""
    name: str = ""
    equivalents: tuple[RequestEndpoint, ...] = ()
    """The same resource at every version, in the order of registration."""

    @property
    def is_namespace(self) -> bool:
        return not self.endpoint.group and self.endpoint.resource == "namespaces"

    @property
    def scope(self) -> str:
        return "Namespaced" if self.namespace and not self.is_namespace else "Cluster"


@dataclass(frozen=True, slots=True)
class AdmissionRule:
    """A rule of a webhook or policy: the operations and resources that it matches."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Plural and subresource; both may be ``*``."""
    scope: str = EVERY
    names: frozenset[str] = frozenset()
    """Object names; empty means any. Only policies have them."""

    def matches(self, request: MatchedRequest, endpoint: RequestEndpoint) -> bool:
        """Return whether the rule matches the request as if it were made at ``endpoint``."""
        return (
            self.scope in (EVERY, request.scope)
            and _has(self.operations, request.operation)
            and _has(self.groups, endpoint.group)
            and _has(self.versions, endpoint.version)
            and self._has_resource(endpoint.resource, request.subresource)
            and (not self.names or request.name in self.names)
        )

    def may_mean(
        self, operation: str, groups: Collection[str], plural: str, subresource: str
    ) -> bool:
        """Return whether it could match at any version and for any object, to skip rules about
        other resources."""
        return (
            _has(self.operations, operation)
            and any(_has(self.groups, group) for group in groups)
            and self._has_resource(plural, subresource)
        )

    def _has_resource(self, plural: str, subresource: str) -> bool:
        return any(
            wanted in (EVERY, plural) and below in (EVERY, subresource)
            for wanted, below in self.resources
        )


def read_rule(obj: Mapping[str, Any]) -> AdmissionRule:
    """Parse a rule of a stored configuration; missing parts (of objects written directly to the
    store) match nothing."""
    return AdmissionRule(
        operations=_texts(obj, "operations"),
        groups=_texts(obj, "apiGroups"),
        versions=_texts(obj, "apiVersions"),
        resources=tuple(_split(str(text)) for text in obj.get("resources") or ()),
        scope=str(obj.get("scope") or EVERY),
        names=_texts(obj, "resourceNames"),
    )


def _has(wanted: Collection[str], value: str) -> bool:
    return EVERY in wanted or value in wanted


def _split(text: str) -> tuple[str, str]:
    """Split resource and subresource; without a slash only the resource itself matches."""
    plural, _, subresource = text.partition("/")
    return plural, subresource


def _texts(obj: Mapping[str, Any], name: str) -> frozenset[str]:
    return frozenset(map(str, obj.get(name) or ()))
